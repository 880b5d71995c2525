import { adminHandler } from '../../../src/operations/admin/commands/admin-commands.ts'
import type { TestApp, TestReply } from '../../harness/app.ts'
import { TestBrowser } from '../../harness/browser.ts'

/** Runs a command of `brigade admin` in the process of the gateway. */
// biome-ignore lint/suspicious/noExplicitAny: the commands print arbitrary objects.
export const admin = (app: TestApp, name: string, args: Record<string, unknown> = {}): Promise<any> => adminHandler(app.gateway.app)({ name, args })

/** Signs a person in with a one-time link, as the operator makes it. Returns the cookie. */
export async function signInByLink(app: TestApp, email: string): Promise<string> {
  const { url } = await admin(app, 'sign-in', { email })
  const browser = new TestBrowser()
  const form = { token: new URL(url).searchParams.get('token') ?? '' }
  await browser.open(`${app.baseUrl}/auth/link`, { form, headers: { origin: app.baseUrl } })
  return browser.cookieHeader(`${app.baseUrl}/me`)
}

/** Signs a person in at an identity provider. Returns the cookie, which is empty when the sign-in was refused. */
export async function signInAt(app: TestApp, provider: 'google' | 'github'): Promise<string> {
  const browser = new TestBrowser()
  await browser.follow(`${app.baseUrl}/auth/${provider}`, url => new URL(url).pathname === '/me')
  return browser.cookieHeader(`${app.baseUrl}/me`)
}

/** Every address below /me/operator, with a body that it takes. */
export const operatorCalls: readonly (readonly [method: string, path: string, body?: object])[] = [
  ['GET', '/me/operator/doctor'],
  ['GET', '/me/operator/organisations'],
  ['GET', '/me/operator/maintenance'],
  ['PUT', '/me/operator/maintenance/alpha/test-model', { for_s: 60 }],
  ['DELETE', '/me/operator/maintenance/alpha/test-model'],
  ['GET', '/me/operator/provider-keys'],
  ['POST', '/me/operator/provider-keys/alpha/test'],
  ['GET', '/me/operator/outbox'],
  ['GET', '/me/operator/backlog'],
]

/** Status and body of a reply. */
export const seen = ({ status, text }: TestReply): readonly [number, string] => [status, text]
