/** The page that asks before the command line gets a key, as a person uses it. */
import { createHash } from 'node:crypto'
import type { BrowserReply, TestBrowser } from './browser.ts'

/** The fields of the form on the page. */
export function formOf(html: string): Record<string, string> {
  return Object.fromEntries([...html.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)].map(([, name, value]) => [name ?? '', value ?? '']))
}

/** Opens the address, signs in on the way where that needs no page, and presses the button; the redirect to the command line. */
export async function pressThrough(browser: TestBrowser, url: string): Promise<BrowserReply> {
  const shown = await browser.follow(url)
  return browser.open(new URL('/cli/login', shown.url).href, { form: formOf(shown.text), headers: { origin: new URL(shown.url).origin } })
}

/** The SHA-256 of a verifier, as RFC 7636 has it. */
export const challengeOf = (verifier: string): string => createHash('sha256').update(verifier).digest('base64url')
