/** What a start shows to a person at a terminal: at most 12 lines. */
import type { RunningGateway } from '../../composition/serve.ts'
import { durationText } from '../../platform/observe/terminal/progress.ts'
import type { Paint } from '../../platform/observe/terminal/terminal.ts'
import { version } from '../../version.ts'
import { plain } from '../command-output.ts'

export interface TerminalBannerOptions {
  readonly workers: number
  readonly readyMs: number
  readonly paint: Paint
}

/** A label with one or two lines of text. */
type Row = readonly [label: string, text: string, below?: string]

/** The address that client commands use when nothing else is set. */
const defaultAddress = 'http://127.0.0.1:8787'
/** More names than this are counted. */
const providersNamedMax = 6

/**
 * Returns the lines for the terminal. A start on an embedded database shows a link that signs its owner in. On PostgreSQL many people and processes share an
 * installation, so its operator makes a link with a command.
 */
export async function terminalBanner(gateway: RunningGateway, options: TerminalBannerOptions): Promise<string> {
  const { paint, workers, readyMs } = options
  const { baseUrl, firstRun } = gateway
  const processes = workers === 1 ? '' : `, ${workers} workers`
  const title = `${paint('bold', `Brigade ${version}`)}   ${paint('cyan', baseUrl)}   ${paint('dim', `ready in ${durationText(readyMs)}${processes}`)}`
  const there = baseUrl === defaultAddress ? '' : ` --base-url ${baseUrl}`
  const upper: Row[] = [
    await signInRow(gateway, paint),
    ...(firstRun === null ? [] : [['Your API key', `${paint('bold', firstRun.key)}   ${paint('dim', 'shown only now')}`] as const]),
    ['Providers', ...providersOf(gateway, paint)],
  ]
  const lower: Row[] = [
    ['Connect a client', `npx brigade login${there} && npx brigade connect`],
    ['Help', `npx brigade --help   ${paint('dim', 'and docs/README.md')}`],
    ['Stop', 'Ctrl-C'],
  ]
  const lines = ['', `  ${title}`, '', ...linesOf(upper, paint), '', ...linesOf(lower, paint), '']
  return `${lines.join('\n')}\n`
}

const labelChars = 19

function linesOf(rows: readonly Row[], paint: Paint): string[] {
  return rows.flatMap(([label, text, below]) => [
    `  ${paint('dim', label.padEnd(labelChars))}${text}`,
    ...(below === undefined ? [] : [`  ${' '.repeat(labelChars)}${paint('dim', below)}`]),
  ])
}

async function signInRow({ app, baseUrl, database }: RunningGateway, paint: Paint): Promise<Row> {
  const label = 'Open the console'
  const owner = database === 'embedded' ? await app.orgs.firstOwner().catch(() => null) : null
  const link = owner === null ? null : await app.makeSignInLink(owner).catch(() => null)
  if (link === null) return [label, paint('cyan', `${baseUrl}/console`), 'npx brigade admin sign-in --email <address> prints a link that signs a person in']
  return [label, paint('cyan', link.url), `signs you in as ${plain(link.email)}; works once, within ${lifeText(link.lifeSeconds)}`]
}

function lifeText(seconds: number): string {
  return seconds < 120 ? `${seconds} seconds` : `${Math.floor(seconds / 60)} minutes`
}

function providersOf({ app }: RunningGateway, paint: Paint): [text: string, below?: string] {
  const { ids, sandbox } = app.providersAtStart()
  const named = ids.slice(0, providersNamedMax).join(', ')
  const all = ids.length > providersNamedMax ? `${named} and ${ids.length - providersNamedMax} more` : named
  if (ids.length === 0) return [`${paint('yellow', 'none')}: set a key such as GROQ_API_KEY in .env, or SANDBOX=on`]
  if (ids.length === 1 && sandbox.isOn) return ['sandbox (simulated, free); for a real one set GROQ_API_KEY=… in .env']
  return sandbox.isOn ? [all] : [all, `the sandbox is off, ${sandbox.why}; ${sandbox.turnOn}`]
}
