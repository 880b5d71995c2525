/**
 * Which of the three headers of a messages call carries the gateway key, and which carry a credential for the provider. Pure.
 * Decision 0140 says why.
 */

type Headers = Readonly<Record<string, string | string[] | undefined>>

/** What begins every key of a gateway. A value that begins so is ours to judge and goes to nobody else, valid or not. */
const keyStart = 'br-'

/**
 * The credential of the call as the one header that the rest of the gateway reads. In this order: `x-br-api-key`; a gateway key or agent
 * token in `Authorization: Bearer`; one in `x-api-key`. The first that is there counts, and when it is not valid no other is tried. Empty
 * when none is there: then the call has no credential.
 */
export function gatewayCredential(headers: Headers): { authorization?: string } {
  const own = textOf(headers['x-br-api-key'])
  if (own !== null) return { authorization: /^bearer\s/i.test(own) ? own : `Bearer ${own}` }
  const { authorization } = headers
  const bearer = bearerOf(textOf(authorization))
  if (bearer !== null && isGatewayShaped(bearer)) return { authorization: `Bearer ${bearer}` }
  const apiKey = textOf(headers['x-api-key'])
  return apiKey !== null && isGatewayShaped(apiKey) ? { authorization: `Bearer ${apiKey}` } : {}
}

/** What the caller sends along for the provider, untouched; null = nothing. Never anything that could be a credential of the gateway. */
export function providerCredential(headers: Headers): { readonly authorization: string | null; readonly xApiKey: string | null } | null {
  const authorization = textOf(headers['authorization'])
  const xApiKey = textOf(headers['x-api-key'])
  const forwarded = {
    authorization: authorization === null || holdsGatewayCredential(authorization) ? null : authorization,
    xApiKey: xApiKey === null || holdsGatewayCredential(xApiKey) ? null : xApiKey,
  }
  return forwarded.authorization === null && forwarded.xApiKey === null ? null : forwarded
}

function textOf(value: string | string[] | undefined): string | null {
  const text = (Array.isArray(value) ? value[0] : value)?.trim()
  return text === undefined || text === '' ? null : text
}

const bearerOf = (header: string | null): string | null => /^bearer\s+(\S+)$/i.exec(header ?? '')?.[1] ?? null

const isGatewayShaped = (token: string): boolean => token.startsWith(keyStart) || isAgentToken(token)

/** A key of ours anywhere between characters that no credential contains. */
const keyInside = new RegExp(`(?:^|[^A-Za-z0-9_-])${keyStart}`, 'i')

/**
 * True for a header with a credential of the gateway anywhere in it: after another scheme, in quotes, in a list, written twice, or as the base64 of
 * Basic.
 */
function holdsGatewayCredential(header: string): boolean {
  const basic = /^basic\s+(\S+)$/i.exec(header)?.[1]
  const text = basic === undefined ? header : `${header} ${Buffer.from(basic, 'base64').toString('latin1')}`
  return keyInside.test(text) || text.split(/[\s,;"'=:]+/).some(isAgentToken)
}

/** Agent tokens are JWTs of the type `at+jwt`. Other JWTs are somebody else's. */
function isAgentToken(token: string): boolean {
  const [header, , signature, more] = token.split('.')
  if (header === undefined || signature === undefined || more !== undefined) return false
  try {
    const value: unknown = JSON.parse(Buffer.from(header, 'base64url').toString('utf8'))
    return typeof value === 'object' && value !== null && 'typ' in value && typeof value.typ === 'string' && /^(application\/)?at\+jwt$/i.test(value.typ)
  } catch {
    return false
  }
}
