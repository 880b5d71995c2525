/** Uses the page that asks a person before the command line gets a key. */
import { createHash } from 'node:crypto'
import type { BrowserReply, TestBrowser } from './browser.ts'

/** Returns the fields of the form on the page. */
export function formOf(html: string): Record<string, string> {
  return Object.fromEntries([...html.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)].map(([, name, value]) => [name ?? '', value ?? '']))
}

/** Opens the address, signs in where that needs no page, and presses the button. Returns the redirect to the command line. */
export async function pressThrough(browser: TestBrowser, url: string): Promise<BrowserReply> {
  const shown = await browser.follow(url)
  return browser.open(new URL('/cli/login', shown.url).href, { form: formOf(shown.text), headers: { origin: new URL(shown.url).origin } })
}

/** Returns the code challenge of a verifier (RFC 7636, S256). */
export const challengeOf = (verifier: string): string => createHash('sha256').update(verifier).digest('base64url')
