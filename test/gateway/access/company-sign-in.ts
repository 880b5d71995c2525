import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestApp, TestReply } from '../../harness/app.ts'
import { type BrowserReply, TestBrowser } from '../../harness/browser.ts'

/** Writes a file of issuers, and returns its path. */
export function fileOf(content: unknown): string {
  const path = join(mkdtempSync(join(tmpdir(), 'brigade-sign-in-')), 'sign-in.json')
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

/** A person in a browser of their own. */
export interface SignedInPerson {
  readonly reply: BrowserReply
  readonly browser: TestBrowser
  /** Reads or writes with the session. */
  call(method: string, path: string, body?: unknown): Promise<TestReply>
}

/** Signs a person in at an issuer of a gateway, up to the reply of the callback. */
export async function signInAt(app: TestApp, issuer: string, browser = new TestBrowser()): Promise<SignedInPerson> {
  const begun = await browser.open(`${app.baseUrl}/auth/${issuer}`)
  const atIssuer = begun.location === null ? begun : await browser.open(begun.location)
  const reply = atIssuer.location === null ? atIssuer : await browser.open(atIssuer.location)
  return { reply, browser, call: (method, path, body) => app.call(method, path, body, { cookie: browser.cookieHeader(`${app.baseUrl}/me`) }) }
}
