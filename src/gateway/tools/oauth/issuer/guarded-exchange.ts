import type { CustomFetch } from 'openid-client'
import { GatewayError } from '../../../../platform/errors.ts'
import { abortSignalOf, type CancelSignal } from '../../../../platform/loop/cancellation.ts'
import type { Outbound } from '../../../../platform/outbound/outbound.ts'
import { BodyTooLargeError, type OutboundReply } from '../../../../platform/outbound/upstream-body.ts'
import { BlockedAddressError } from '../../../../platform/outbound/url-guard.ts'
import { OAuthFailure } from './oauth-failure.ts'

/** Maximum time of one request to an issuer, or for one of its documents. */
const issuerTimeoutMs = 8_000
/** Metadata, tokens and errors have a few KiB. */
const replyMaxBytes = 64 * 1024
/** Statuses without a body. The `Response` constructor refuses a body with them. */
const bodiless = new Set([101, 204, 205, 304])

interface Exchanged {
  readonly status: number
  readonly headers: OutboundReply['headers']
  readonly bytes: Buffer
}

interface Asked {
  readonly method: 'GET' | 'POST'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

/**
 * Sends one request through the URL guard, with a bound of time and of bytes. Follows no redirect and accepts no compression. Throws OAuthFailure, and the
 * reason of the signal when it aborts.
 */
export async function exchanged(outbound: Pick<Outbound, 'toUserUrl'>, { headers, ...asked }: Asked, signal: CancelSignal): Promise<Exchanged> {
  const cut = AbortSignal.any([abortSignalOf(signal), AbortSignal.timeout(issuerTimeoutMs)])
  const times = { headersTimeoutMs: issuerTimeoutMs, bodyTimeoutMs: issuerTimeoutMs }
  const { host } = new URL(asked.url)
  try {
    const reply = await outbound.toUserUrl({
      ...asked,
      headers: { 'user-agent': 'brigade', ...headers, 'accept-encoding': 'identity' },
      signal: cut,
      ...times,
    })
    const bytes = await reply.body.buffer(replyMaxBytes)
    return { status: reply.status, headers: reply.headers, bytes }
  } catch (error) {
    if (signal.aborted) throw signal.reason
    throw networkFailure(error, host)
  }
}

function networkFailure(error: unknown, host: string): OAuthFailure {
  const options = { cause: error }
  if (error instanceof GatewayError || isBlocked(error)) return new OAuthFailure('blocked_address', `the address at ${host} is not public`, options)
  if (error instanceof BodyTooLargeError) return new OAuthFailure('protocol', `the answer of ${host} has more than ${replyMaxBytes} bytes`, options)
  return new OAuthFailure('unavailable', `${host} could not be reached in time`, options)
}

/** The error of the socket is below the error of the client. */
function isBlocked(error: unknown): boolean {
  if (error instanceof BlockedAddressError) return true
  return typeof error === 'object' && error !== null && (('code' in error && error.code === 'BLOCKED_ADDRESS') || ('cause' in error && isBlocked(error.cause)))
}

/** Returns the value of a header, or null. */
export function headerOf(headers: OutboundReply['headers'], name: string): string | null {
  const value = headers[name]
  return Array.isArray(value) ? (value[0] ?? null) : (value ?? null)
}

/** Returns the `fetch` that openid-client uses for one exchange with an issuer. The URLs come from metadata, so they pass the guard like every other one. */
export function guardedOAuthFetch(outbound: Pick<Outbound, 'toUserUrl'>, signal: CancelSignal): CustomFetch {
  return async (url, { method, headers, body }) => {
    const {
      status,
      headers: got,
      bytes,
    } = await exchanged(
      outbound,
      {
        method: method === 'POST' ? 'POST' : 'GET',
        url,
        headers,
        ...(body instanceof URLSearchParams || typeof body === 'string' ? { body: String(body) } : {}),
      },
      signal,
    )
    const { host } = new URL(url)
    if (status >= 300 && status < 400) throw new OAuthFailure('protocol', `${host} answered with a redirect, which is not followed`)
    if (status === 429 || status >= 500) throw new OAuthFailure('unavailable', `${host} answered ${status}`)
    const contentType = headerOf(got, 'content-type')
    const shown = new Headers(contentType === null ? {} : { 'content-type': contentType })
    return new Response(bodiless.has(status) ? null : new Uint8Array(bytes), { status, headers: shown })
  }
}
