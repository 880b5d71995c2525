import { fail } from '../../../platform/errors.ts'

/** Headers in which a browser names the page that sent a request. A page cannot forge them. */
export interface PageHeaders {
  readonly origin?: string | undefined
  readonly 'sec-fetch-site'?: string | string[] | undefined
}

/** The origins that belong to this gateway. */
export interface OwnPages {
  readonly baseUrl: () => string
  /** The setting CONSOLE_ORIGINS. */
  readonly origins: readonly string[]
}

const loopbackNames = ['127.0.0.1', 'localhost', '[::1]']

/**
 * Throws `foreign_origin` for a request that a browser sent from a page of another site, because a browser adds the session cookie to such requests
 * too. A program that is not a browser sends neither header, and its requests pass.
 */
export function checkOwnPage(headers: PageHeaders, pages: OwnPages): void {
  const { origin } = headers
  const site = headers['sec-fetch-site']
  const isOurs = origin === undefined ? site === undefined || site === 'same-origin' || site === 'none' : isOwnOrigin(origin, pages)
  if (!isOurs) throw fail('foreign_origin', { message: 'This request came from a page of another site. The operator can allow one with CONSOLE_ORIGINS.' })
}

/**
 * Returns the address of this page under the host name that the operator configured. Returns null when the request already uses that name, or uses a
 * name of another computer. Cookies belong to a host name. So a sign-in that begins under one name of a computer and ends under another would fail.
 */
export function properAddress(host: string | undefined, path: string, { baseUrl }: Pick<OwnPages, 'baseUrl'>): string | null {
  const own = new URL(baseUrl())
  if (host === undefined || host === own.host || !isLoopback(own) || !URL.canParse(`${own.protocol}//${host}`)) return null
  const other = new URL(`${own.protocol}//${host}`)
  return isLoopback(other) && other.port === own.port ? `${own.origin}${path}` : null
}

function isOwnOrigin(origin: string, { baseUrl, origins }: OwnPages): boolean {
  const own = new URL(baseUrl())
  if (origin === own.origin || origins.includes(origin)) return true
  // A gateway on this computer is reachable under several host names, such as localhost and 127.0.0.1, and people type any of them.
  if (!isLoopback(own) || !URL.canParse(origin)) return false
  const other = new URL(origin)
  return isLoopback(other) && other.port === own.port && other.protocol === own.protocol
}

const isLoopback = ({ hostname }: URL): boolean => loopbackNames.includes(hostname)
