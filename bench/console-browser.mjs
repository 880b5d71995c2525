/** The browser of `bench:console`: it signs in once, opens pages as a person with an empty cache does, and scrolls them. */
import { existsSync } from 'node:fs'
import { chromium } from 'playwright-core'

const programs = [process.env.CHROMIUM ?? '', '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const flags = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update']
const waitMs = 30_000
/** One turn of the wheel, how many there are, and the time between two. */
const wheel = { pixels: 900, turns: 40, everyMs: 50 }

/** Starts the browser of this machine. Throws when there is none. */
export async function startBrowser() {
  const executablePath = programs.find(path => path !== '' && existsSync(path))
  if (executablePath === undefined) throw new Error('no Chromium is installed. Install it, or name its program with CHROMIUM.')
  return chromium.launch({ executablePath, args: flags })
}

/** Signs in with a link. Returns the state that later contexts begin with. */
export async function signedIn(browser, link) {
  const context = await browser.newContext()
  const page = await context.newPage()
  await page.goto(link)
  await page.getByRole('button').first().click()
  await page.waitForURL(/\/console/, { timeout: waitMs })
  const state = await context.storageState()
  await context.close()
  return state
}

/** Runs in the page before its own code: notes when the first element of a kind is there, and how long the thread of the page is busy. */
function watch(selector) {
  globalThis.benchSeen = { firstMs: null, longestMs: 0 }
  const look = () => {
    if (globalThis.benchSeen.firstMs === null && document.querySelector(selector)) globalThis.benchSeen.firstMs = performance.now()
  }
  new MutationObserver(look).observe(document, { childList: true, subtree: true })
  new PerformanceObserver(list => {
    for (const entry of list.getEntries()) globalThis.benchSeen.longestMs = Math.max(globalThis.benchSeen.longestMs, entry.duration)
  }).observe({ type: 'longtask' })
}

/** Opens a page with an empty cache, waits for its first rows, and scrolls through it. Returns the times in milliseconds, and what was asked for. */
export async function measurePage(browser, storageState, url, { path, first }) {
  const context = await browser.newContext({ storageState, viewport: { width: 1280, height: 900 }, locale: 'en-IN' })
  try {
    const page = await context.newPage()
    const answers = []
    page.on('response', response => {
      const { pathname } = new URL(response.url())
      // The stream of hints has no end.
      if (pathname.startsWith('/me') && pathname !== '/me/events')
        answers.push(
          response.body().then(
            body => body.length,
            () => 0,
          ),
        )
    })
    await page.addInitScript(watch, first)
    await page.goto(url + path)
    await page.locator(first).first().waitFor({ state: 'attached', timeout: waitMs })
    // The policy of the console forbids eval, which waitForFunction needs.
    while ((await page.locator('[aria-busy=true]:not(button)').count()) > 0) await page.waitForTimeout(wheel.everyMs)
    const rowsMs = await page.evaluate('benchSeen.firstMs')
    const paintMs = await page.evaluate('performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? performance.now()')
    const requests = answers.length
    await page.evaluate('benchSeen.longestMs = 0')
    await page.mouse.move(640, 450)
    for (let turn = 0; turn < wheel.turns; turn++) {
      await page.mouse.wheel(0, wheel.pixels)
      await page.waitForTimeout(wheel.everyMs)
    }
    const pauseMs = await page.evaluate('benchSeen.longestMs')
    return { paintMs, rowsMs, pauseMs, requests, largestBytes: Math.max(0, ...(await Promise.all(answers))) }
  } finally {
    await context.close()
  }
}
