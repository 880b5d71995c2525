import { parseSetCookie } from 'cookie'
import { checkAgainstRow } from './row-contract.ts'

export interface BrowserReply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: test assertions read arbitrary JSON.
  readonly json: any
  /** The absolute target of a redirect. Null for other replies. */
  readonly location: string | null
  /** The `set-cookie` headers as they arrived. */
  readonly setCookies: readonly string[]
}

interface Kept {
  readonly name: string
  readonly value: string
  readonly path: string
}

/** Maximum number of redirects that `follow` follows. */
const redirectsMax = 10

/** A minimal browser for sign-in tests: a cookie jar by host and path, and redirects one at a time. */
export class TestBrowser {
  readonly #jar = new Map<string, Kept[]>()

  /** Makes one request without following redirects. Replies of a gateway are checked against its endpoint table. */
  async open(url: string, options: { method?: string; form?: Record<string, string>; headers?: Record<string, string> } = {}): Promise<BrowserReply> {
    const { host, pathname } = new URL(url)
    const method = options.method ?? (options.form === undefined ? 'GET' : 'POST')
    const cookie = this.cookieHeader(url)
    const response = await fetch(url, {
      method,
      redirect: 'manual',
      headers: { ...(cookie === '' ? {} : { cookie }), ...options.headers },
      ...(options.form === undefined ? {} : { body: new URLSearchParams(options.form) }),
    })
    const text = await response.text()
    const setCookies = response.headers.getSetCookie()
    for (const line of setCookies) this.#keep(host, line)
    let json: unknown = null
    try {
      json = JSON.parse(text)
    } catch {
      // The reply is a page and not JSON.
    }
    checkAgainstRow(method, pathname, response.status, json)
    const location = response.headers.get('location')
    return { status: response.status, headers: response.headers, text, json, setCookies, location: location === null ? null : new URL(location, url).href }
  }

  /** Follows redirects until `isEnd` accepts the target, or the reply is not a redirect. Returns the last reply. */
  async follow(url: string, isEnd: (url: string) => boolean = () => false): Promise<BrowserReply & { readonly url: string }> {
    let at = url
    for (let hops = 0; hops < redirectsMax; hops++) {
      const reply = await this.open(at)
      if (reply.location === null || isEnd(reply.location)) return { ...reply, url: at }
      at = reply.location
    }
    throw new Error(`more than ${redirectsMax} redirects from ${url}`)
  }

  /** Returns the cookie header that the browser would send to the URL. */
  cookieHeader(url: string): string {
    const { host, pathname } = new URL(url)
    const sent = (this.#jar.get(host) ?? []).filter(({ path }) => pathname === path || pathname.startsWith(path.endsWith('/') ? path : `${path}/`))
    return sent.map(({ name, value }) => `${name}=${value}`).join('; ')
  }

  #keep(host: string, line: string): void {
    const { name, value = '', path = '/', maxAge } = parseSetCookie(line)
    const others = (this.#jar.get(host) ?? []).filter(kept => kept.name !== name || kept.path !== path)
    this.#jar.set(host, maxAge === 0 ? others : [...others, { name, value, path }])
  }
}
