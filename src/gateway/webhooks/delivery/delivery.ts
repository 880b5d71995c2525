/** Makes one delivery attempt: sends the request, and derives the result from the reply or the error. */

import type { Clock } from '../../../platform/clock.ts'
import { GatewayError } from '../../../platform/errors.ts'
import { Cancellation, type CancelSignal } from '../../../platform/loop/cancellation.ts'
import type { Outbound } from '../../../platform/outbound/outbound.ts'
import type { OutboundReply } from '../../../platform/outbound/upstream-body.ts'
import { retryAfterOf } from './schedule.ts'
import { deliveryName, signatureOf } from './signature.ts'

export interface DeliveryDeps {
  readonly clock: Clock
  readonly outbound: Pick<Outbound, 'toUserUrl'>
  /** The setting WEBHOOK_TIMEOUT_MS: the maximum time from connecting to the end of the reply. */
  readonly timeoutMs: number
  readonly userAgent: string
}

/** The delivery to send. */
export interface OutgoingDelivery {
  readonly id: string
  readonly endpointId: number
  readonly type: string
  /** The envelope. It is sent byte for byte. */
  readonly body: string
  readonly url: string
  readonly secret: string
}

/** The result of an attempt. `cut` means that this process is stopping, and that nobody knows whether the delivery arrived. */
export type AttemptResult =
  | { readonly kind: 'acknowledged'; readonly code: number }
  | { readonly kind: 'failed'; readonly code: number | null; readonly error: string; readonly retryAfterMs: number | null }
  | { readonly kind: 'cut' }

/** The error when a receiver replies 410. The receiver wants no more deliveries. */
export const goneError = 'gone'

/** Maximum number of reply bytes that are read. The reply is not used, but reading it lets the connection be used again. */
const replyMaxBytes = 64 * 1024

/** Sends the delivery once. Never rejects. `stop` ends the attempt immediately. */
export async function attemptDelivery(deps: DeliveryDeps, delivery: OutgoingDelivery, stop: CancelSignal): Promise<AttemptResult> {
  if (stop.aborted) return { kind: 'cut' }
  const cancellation = new Cancellation()
  const timedOut = new Error('the receiver took too long')
  const endTimer = deps.clock.after(deps.timeoutMs, () => cancellation.abort(timedOut))
  const onStop = (): void => cancellation.abort(stop.reason)
  stop.addEventListener('abort', onStop, { once: true })
  try {
    const reply = await deps.outbound.toUserUrl(requestOf(deps, delivery, cancellation))
    await readOff(reply, cancellation)
    return resultOf(reply, deps.clock.nowMs())
  } catch (error) {
    if (stop.aborted) return { kind: 'cut' }
    return { kind: 'failed', code: null, error: error === timedOut ? 'timeout' : errorCodeOf(error), retryAfterMs: null }
  } finally {
    endTimer()
    stop.removeEventListener('abort', onStop)
  }
}

function requestOf({ clock, timeoutMs, userAgent }: DeliveryDeps, { id, endpointId, type, body, url, secret }: OutgoingDelivery, signal: Cancellation) {
  return {
    method: 'POST',
    url,
    headers: {
      'content-type': 'application/json',
      'user-agent': userAgent,
      'x-br-event': type,
      'x-br-signature': signatureOf(secret, Math.floor(clock.nowMs() / 1000), body),
      'x-br-webhook-id': String(endpointId),
      'x-br-delivery-id': deliveryName(id),
    },
    body: Buffer.from(body),
    signal,
    headersTimeoutMs: timeoutMs,
    bodyTimeoutMs: timeoutMs,
  } as const
}

/**
 * Reads the reply to its end or to `replyMaxBytes`, and does not wait for later bytes. An error in the body does not matter, because the
 * status has already arrived.
 */
async function readOff({ body }: OutboundReply, signal: CancelSignal): Promise<void> {
  let bytes = 0
  try {
    for await (const chunk of body) {
      bytes += chunk.byteLength
      if (bytes > replyMaxBytes) return
    }
  } catch (error) {
    if (signal.aborted) throw error
  }
}

function resultOf({ status, headers }: OutboundReply, nowMs: number): AttemptResult {
  if (status >= 200 && status < 300) return { kind: 'acknowledged', code: status }
  const error = status === 410 ? goneError : status >= 300 && status < 400 ? 'redirect' : 'http_status'
  return { kind: 'failed', code: status, error, retryAfterMs: status === 429 || status === 503 ? retryAfterOf(headers['retry-after'], nowMs) : null }
}

const errorCodes: Readonly<Record<string, string>> = {
  BLOCKED_ADDRESS: 'blocked_address',
  ECONNREFUSED: 'connection_refused',
  ECONNRESET: 'connection_reset',
  EPIPE: 'connection_reset',
  UND_ERR_SOCKET: 'connection_reset',
  ENOTFOUND: 'unknown_host',
  EAI_AGAIN: 'unknown_host',
  ETIMEDOUT: 'timeout',
  UND_ERR_CONNECT_TIMEOUT: 'timeout',
  UND_ERR_HEADERS_OVERFLOW: 'bad_reply',
  UND_ERR_HEADERS_TIMEOUT: 'timeout',
  UND_ERR_BODY_TIMEOUT: 'timeout',
}

/** Returns a code for an attempt without a reply. The code contains none of the receiver's own text. */
function errorCodeOf(thrown: unknown): string {
  // The URL guard throws a GatewayError for a blocked URL.
  if (thrown instanceof GatewayError) return 'blocked_address'
  const code = typeof thrown === 'object' && thrown !== null && 'code' in thrown ? String(thrown.code) : ''
  if (/^(ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|EPROTO)/.test(code)) return 'tls'
  if (thrown instanceof Error && thrown.name === 'HTTPParserError') return 'bad_reply'
  return errorCodes[code] ?? 'connection_failed'
}
