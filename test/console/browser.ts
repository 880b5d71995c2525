/** A real browser for tests of the console. Every page that it opens is watched, and a test fails for any fault that the browser reports. */
import { existsSync } from 'node:fs'
import axe from 'axe-core'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { buildConsoleIfChanged } from '../../scripts/build.mjs'
import type { TestApp } from '../harness/app.ts'
import { until } from '../harness/until.ts'

const shells = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium-shell']
const programs = [process.env['CHROMIUM'] ?? '', ...shells, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
/** The browser of this machine. Null when there is none; .ci/run installs the one of Debian. */
export const program = programs.find(path => path !== '' && existsSync(path)) ?? null
/** The title of a suite that needs the browser. */
export const suiteName = (name: string): string => (program === null ? `${name} on chromium (not installed)` : name)

const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--font-render-hinting=none',
]

/** Widths that every page must fit. */
export const sizes = { wide: { width: 1280, height: 900 }, narrow: { width: 390, height: 844 } } as const
export type Theme = 'light' | 'dark'

/** Starts the browser, after the console is built. */
export async function startBrowser(): Promise<Browser> {
  if (program === null) throw new Error('no chromium is installed')
  return chromium.launch({ executablePath: program, args: flags })
}

/** Builds the console unless it is up to date. A gateway that a test starts reads it then. */
export async function builtConsole(): Promise<void> {
  if (!(await buildConsoleIfChanged())) throw new Error('the console does not compile')
}

interface OpenOptions {
  readonly cookie?: string | undefined
  readonly theme?: Theme
  readonly size?: keyof typeof sizes
  /** Texts of console errors that the test causes itself, such as a refused request. */
  readonly expected?: readonly RegExp[]
}

/** A page of the console with the faults that the browser reported. */
export class ConsolePage {
  readonly page: Page
  readonly context: BrowserContext
  readonly faults: string[] = []
  readonly #expected: readonly RegExp[]

  constructor(page: Page, context: BrowserContext, expected: readonly RegExp[]) {
    this.page = page
    this.context = context
    this.#expected = expected
  }

  watch(page: Page, origin: string): void {
    page.on('console', message => {
      if (message.type() === 'error' || message.type() === 'warning') this.#fault(`console: ${message.text()} ${message.location().url}`.trim())
    })
    page.on('pageerror', error => this.#fault(`page: ${error.message}`))
    page.on('request', request => {
      const { protocol, origin: to } = new URL(request.url())
      if (to !== origin && protocol !== 'data:' && protocol !== 'blob:') this.#fault(`another origin: ${request.url()}`)
    })
  }

  /** Returns the violations of WCAG 2.2 AA that axe finds, one line each. With rules, it checks only these. */
  async axe(rules?: readonly string[]): Promise<string[]> {
    // Animations of panels and of a new theme change contrast while they run, and the end of one may begin the next.
    await this.page.evaluate(
      `(async () => {
        const isMoving = () => document.getAnimations().some(one => one.playState === 'running' && one.effect?.getTiming().iterations !== Infinity)
        for (let quiet = 0; quiet < 3; quiet = isMoving() ? 0 : quiet + 1) await new Promise(requestAnimationFrame)
      })()`,
    )
    // Half a megabyte of source is parsed once for a document.
    if (!(await this.page.evaluate('"axe" in window'))) await this.page.evaluate(axe.source)
    const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
    const found = (await this.page.evaluate(`axe.run({ runOnly: ${JSON.stringify(rules ?? tags)} })`)) as AxeResult
    return found.violations.map(({ id, nodes }) => `${id}: ${nodes.map(node => `${node.target.join(' ')} ${node.failureSummary ?? ''}`).join(' | ')}`)
  }

  #fault(text: string): void {
    if (!this.#expected.some(pattern => pattern.test(text))) this.faults.push(text)
  }
}

interface AxeResult {
  readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly target: readonly string[]; readonly failureSummary?: string }[] }[]
}

/** Opens a page of the gateway as a person with this cookie. */
export async function openPage(browser: Browser, app: Pick<TestApp, 'baseUrl'>, path: string, options: OpenOptions = {}): Promise<ConsolePage> {
  const { cookie, theme = 'light', size = 'wide', expected = [] } = options
  const context = await browser.newContext({ viewport: sizes[size], colorScheme: theme, reducedMotion: 'reduce', locale: 'en-IN', timezoneId: 'Asia/Kolkata' })
  context.setDefaultTimeout(30_000)
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  if (cookie !== undefined) {
    const [name = '', value = ''] = cookie.split(';')[0]?.split(/=(.*)/s) ?? []
    await context.addCookies([{ name, value, url: app.baseUrl, httpOnly: true, sameSite: 'Lax' }])
  }
  const page = await context.newPage()
  const opened = new ConsolePage(page, context, expected)
  opened.watch(page, new URL(app.baseUrl).origin)
  await page.goto(app.baseUrl + path)
  return opened
}

const settledMs = 30_000

/** Resolves when no part of the page waits for the gateway, the samples of the gallery aside. The network itself is never idle, because the stream of hints stays open. */
export async function settled(page: Page): Promise<void> {
  await until(async () => (await page.locator('[aria-busy=true]:not(button, [data-sample] *)').count()) === 0, 'the page is loaded', settledMs)
}
