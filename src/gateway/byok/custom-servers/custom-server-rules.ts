import { fail } from '../../../platform/errors.ts'
import type { UrlGuard } from '../../../platform/outbound/url-guard.ts'
import { cleanName } from '../../../platform/values/clean-name.ts'

/** The parameters of a registration, with trimmed texts. */
export interface ServerParams {
  readonly name: string
  /** The catalog model that the server runs. */
  readonly model: string
  readonly baseUrl: string
  readonly upstreamModel: string
  readonly key: string | null
  readonly residency: 'india' | 'global'
}

/** The changed fields of a server. An omitted field keeps its value. */
export type ServerChange = Partial<ServerParams>

// biome-ignore lint/suspicious/noControlCharactersInRegex: refusing control characters is the point.
const upstreamModelShape = /^[^\u0000-\u001f\u007f-\u009f]{1,256}$/u
/** The form of a key that can be sent in a header without a change. */
const keyShape = /^[\x21-\x7e]{1,4096}$/
const urlMaxChars = 2048
const slugMaxChars = 40

/**
 * Returns the parameters with the URL in the form that the gateway connects to. Throws `bad_name` and `bad_request` for every fault that can be found
 * without a connection, such as a private or reserved address.
 */
export function checkedParams(params: ServerParams, guard: UrlGuard, gatewayUrl: string): ServerParams {
  const name = cleanName(params.name)
  if (!upstreamModelShape.test(params.upstreamModel))
    throw fail('bad_request', { message: '"upstream_model" must be the id that the server itself knows: 1 to 256 characters.' })
  if (params.key !== null && !keyShape.test(params.key))
    throw fail('bad_request', { message: '"key" must be 1 to 4096 printable characters without spaces. Leave it out for a server without keys.' })
  const url = params.baseUrl.length <= urlMaxChars && URL.canParse(params.baseUrl) ? new URL(params.baseUrl) : null
  if (url === null) throw fail('bad_request', { message: '"base_url" must be a URL such as https://models.example.com/v1.' })
  if (url.search !== '' || url.hash !== '' || /[?#]/.test(params.baseUrl))
    throw fail('bad_request', { message: '"base_url" must not carry a query or a fragment.' })
  if (url.pathname.endsWith('/chat/completions'))
    throw fail('bad_request', { message: '"base_url" ends in the version, for example /v1: /chat/completions is put behind it.' })
  guard.check(url)
  if (url.host === hostOf(gatewayUrl)) throw fail('bad_request', { message: '"base_url" is this gateway itself: calls would go round in a circle.' })
  return { ...params, name, baseUrl: url.href.replace(/\/+$/, '') }
}

function hostOf(url: string): string | null {
  return URL.canParse(url) ? new URL(url).host : null
}

/** Returns the slug of a new server. The slug is made from the server's name. A number is appended when the slug is taken. */
export function slugFor(name: string, taken: readonly string[]): string {
  const plain = name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/\p{M}/gu, '')
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, slugMaxChars)
    .replace(/^-+|-+$/g, '')
  const slug = plain === '' ? 'endpoint' : plain
  if (!taken.includes(slug)) return slug
  let number = 2
  while (taken.includes(`${slug}-${number}`)) number++
  return `${slug}-${number}`
}
