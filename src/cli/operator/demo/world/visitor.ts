/** Makes requests to the gateway of the demonstration as a browser or a program does. */
import { must } from '../demo-client.ts'

/** What identifies the caller: the cookie of a session, or a key or token. */
export type Credential = { readonly cookie: string } | { readonly token: string }

/** Makes one request. Returns the JSON of the reply. Throws when it is refused, because the demonstration asks only for what is allowed. */
export type Visitor = (method: string, path: string, body?: object | string) => Promise<Record<string, unknown>>

/** Returns a visitor with a credential. A body that is text is sent as text. */
export function visitor(baseUrl: string, credential: Credential): Visitor {
  const own = 'cookie' in credential ? { cookie: credential.cookie } : { authorization: `Bearer ${credential.token}` }
  return async (method, path, body) => {
    const type = typeof body === 'string' ? 'text/markdown' : 'application/json'
    const response = await fetch(`${baseUrl}${path}`, {
      method,
      headers: { ...own, ...(body === undefined ? {} : { 'content-type': type }) },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return (response.headers.get('content-type') ?? '').includes('json') ? (JSON.parse(text) as Record<string, unknown>) : {}
  }
}

/** Returns the number of a reply. */
export const numberOf = (reply: Record<string, unknown>, name: string): number => Number(must(reply[name], `a reply has no ${name}`))
