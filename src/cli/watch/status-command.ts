import type { Command } from 'commander'
import { addClientFlags, addExamples } from '../client-command.ts'
import { type ClientFlags, type ClientSettings, clientSettings } from '../client-settings.ts'
import { CommandError, commandErrorOf, exitCodes } from '../command-error.ts'
import { plain, printJson, printLine, rupees } from '../command-output.ts'
import { gatewayFetch } from '../gateway-fetch.ts'
import { styled } from '../terminal/style.ts'
import { type MyStatus, myStatus } from './my-status.ts'

/** Maximum wait for each answer. */
const patienceMs = 10_000

/** What the gateway says about itself to everybody. */
interface GatewayStatus {
  readonly base_url: string
  readonly version: string
  readonly ready: boolean
  readonly checks: Readonly<Record<string, string>>
}

/** Adds the command `brigade status`. */
export function addStatusCommand(program: Command): void {
  const command = addClientFlags(
    program.command('status').description('say in a few lines whether the gateway is ready, who you are, what was spent and which agents are active'),
  )
  addExamples(command, [
    ['brigade status', 'exit code 1: not ready; 3: not signed in'],
    ['brigade status --json', 'for programs'],
  ])
  command.action(status)
}

async function status(flags: ClientFlags): Promise<void> {
  const settings = clientSettings(flags)
  const [gateway, me] = await Promise.all([gatewayStatus(settings), meOrRefusal(settings)])
  const refusal = me instanceof CommandError ? me : null
  const mine = me instanceof CommandError ? null : me
  if (flags.json === true)
    printJson({ gateway, ...(mine ?? { you: null }), ...(refusal === null ? {} : { refusal: { code: refusal.code, message: refusal.message } }) })
  else
    for (const line of [
      gatewayLine(gateway),
      ...(mine === null ? [`you      ${plain(refusal?.message ?? 'not signed in. Run brigade login, or set BRIGADE_KEY.')}`] : linesOf(mine)),
    ])
      printLine(line)
  if (!gateway.ready) process.exitCode = exitCodes.failed
  else if (mine === null) process.exitCode = refusal?.exitCode ?? exitCodes.refused
}

async function gatewayStatus({ baseUrl }: ClientSettings): Promise<GatewayStatus> {
  const fetchGateway = gatewayFetch(baseUrl, patienceMs)
  const json = async <T>(path: string): Promise<T> => (await fetchGateway(`${baseUrl}${path}`)).json() as Promise<T>
  // A gateway that is not ready answers with 503 and the same fields. Behind a proxy it may not answer, so the address is asked for its version first.
  const { version } = await json<{ version: string }>('/health')
  const { status: state, checks } = await json<{ status: string; checks: Record<string, string> }>('/readyz')
  return { base_url: baseUrl, version, ready: state === 'ready', checks }
}

/** Returns what the credential may know. Null without a credential, and the refusal when the gateway does not accept it. */
async function meOrRefusal(settings: ClientSettings): Promise<MyStatus | CommandError | null> {
  const { credential, baseUrl } = settings
  if (credential === null) return null
  const { gatewayClient } = await import('../../agents/toolkit/gateway-client.ts')
  try {
    return await myStatus(gatewayClient({ baseUrl, credential: credential.reveal(), fetch: gatewayFetch(baseUrl, patienceMs) }))
  } catch (thrown) {
    const error = commandErrorOf(thrown, settings)
    // Without a status, no gateway answered. The call for the state of the gateway says so.
    if (error instanceof CommandError && error.status !== null) return error
    throw error
  }
}

function gatewayLine({ base_url, version, ready, checks }: GatewayStatus): string {
  const wrong = Object.entries(checks).filter(([, state]) => !['ok', 'running'].includes(state))
  const state = ready ? styled('green', 'ready') : styled('red', 'not ready')
  const database = checks['database'] === undefined ? '' : `, database ${checks['database']}`
  const why = wrong.filter(([name]) => name !== 'database').map(([name, what]) => `, ${name} ${what}`)
  return `gateway  ${plain(base_url)}, version ${plain(version)}, ${state}${plain(database + why.join(''))}`
}

const leftWords = { ever: 'left', month: 'left this month', week: 'left this week', day: 'left today' } as const

function linesOf({ you, spend, budget, agents }: MyStatus): string[] {
  const role = you.role === null ? '' : `, ${you.role}`
  const money = (amount: number): string => `₹${rupees([amount])[0]}`
  return [
    `you      ${plain(`${you.kind} "${you.name}" of ${you.org}${role}, scope ${you.scope}`)}`,
    spend === null
      ? 'spend    not known: the token has no scope usage:read'
      : `spend    ${money(spend.cost_inr)} this month, ${spend.calls} ${spend.calls === 1 ? 'call' : 'calls'}, by the organisation`,
    budget === null
      ? 'budget   no budget binds this credential'
      : `budget   ${money(budget.remaining_inr)} of ${money(budget.cap_inr)} ${leftWords[budget.period] ?? leftWords.month} (${plain(budget.scope)} budget${budget.state === 'under' ? '' : `, ${plain(budget.state)}`})`,
    agents === null ? 'agents   not known: the token has no scope usage:read' : `agents   ${agents.active} active, ${agents.paused} paused`,
  ]
}
