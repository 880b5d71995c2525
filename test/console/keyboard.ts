import type { Page } from 'playwright-core'

const stepsMax = 60

/** Presses Tab until the control with this name has the focus. */
export async function tabTo(page: Page, name: string): Promise<void> {
  const focused = `(() => { const one = document.activeElement; return (one.getAttribute('aria-label') ?? one.labels?.[0]?.textContent ?? one.textContent ?? '').trim() })()`
  for (let step = 0; step < stepsMax; step++) {
    if ((await page.evaluate(focused)) === name) return
    await page.keyboard.press('Tab')
  }
  throw new Error(`Tab does not reach ${name}`)
}
