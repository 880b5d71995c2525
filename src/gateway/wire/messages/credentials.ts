/**
 * Decides which of the three headers of a messages call carries the gateway key, and which carry a credential for the provider. It is pure. Decision 0140 gives
 * the reasons.
 */

type Headers = Readonly<Record<string, string | string[] | undefined>>

/** The beginning of every key of a gateway. A value with this beginning is checked here. It is never sent to a provider, even if it is invalid. */
const keyStart = 'br-'

/**
 * Returns the credential of the call in the one header that the rest of the gateway reads. It is the first of these three: `x-br-api-key`, a gateway key or
 * agent token in `Authorization: Bearer`, a gateway key or agent token in `x-api-key`. If that one is invalid, the others are not tried. The result is
 * empty if the call has no credential.
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

/**
 * Returns the credentials that the caller sends for the provider, unchanged; null: there are none. The result never contains anything that could be a
 * credential of the gateway.
 */
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

/** Matches a gateway key after a character that no credential contains. */
const keyInside = new RegExp(`(?:^|[^A-Za-z0-9_-])${keyStart}`, 'i')

/**
 * True for a header that contains a credential of the gateway anywhere: after another scheme, in quotes, in a list, written twice, or in the base64 of Basic.
 */
function holdsGatewayCredential(header: string): boolean {
  const basic = /^basic\s+(\S+)$/i.exec(header)?.[1]
  const text = basic === undefined ? header : `${header} ${Buffer.from(basic, 'base64').toString('latin1')}`
  return keyInside.test(text) || text.split(/[\s,;"'=:]+/).some(isAgentToken)
}

/** True for an agent token, which is a JWT of the type `at+jwt`. Other JWTs do not belong to the gateway. */
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
