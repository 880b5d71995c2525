import { fail } from '../../../platform/errors.ts'

/** What a browser says, truthfully, about the page that sent a request. */
export interface PageHeaders {
  readonly origin?: string | undefined
  readonly 'sec-fetch-site'?: string | string[] | undefined
}

/** Which pages are ours. */
export interface OwnPages {
  readonly baseUrl: () => string
  /** CONSOLE_ORIGINS. */
  readonly origins: readonly string[]
}

const loopbackNames = ['127.0.0.1', 'localhost', '[::1]']

/**
 * Throws `foreign_origin` for a request that the page of another site sent: a browser adds the cookie to those as well. Programs say
 * nothing about pages and pass.
 */
export function checkOwnPage(headers: PageHeaders, pages: OwnPages): void {
  const { origin } = headers
  const site = headers['sec-fetch-site']
  const isOurs = origin === undefined ? site === undefined || site === 'same-origin' || site === 'none' : isOwnOrigin(origin, pages)
  if (!isOurs) throw fail('foreign_origin', { message: 'This request came from a page of another site. The operator can allow one with CONSOLE_ORIGINS.' })
}

/**
 * The address under which the operator knows this gateway, when the browser came to it under another name of the same computer: cookies
 * belong to a name, so a sign-in that begins under one and ends under another would never be recognised. Null when the name is right.
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
  // A gateway on this computer has several names, and people type any of them.
  if (!isLoopback(own) || !URL.canParse(origin)) return false
  const other = new URL(origin)
  return isLoopback(other) && other.port === own.port && other.protocol === own.protocol
}

const isLoopback = ({ hostname }: URL): boolean => loopbackNames.includes(hostname)
