/** One attempt at one delivery: what is sent, what of the answer counts, and why it failed when it did. */

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
  /** WEBHOOK_TIMEOUT_MS: from connecting to the end of the reply. */
  readonly timeoutMs: number
  readonly userAgent: string
}

/** What goes out. */
export interface OutgoingDelivery {
  readonly id: string
  readonly endpointId: number
  readonly type: string
  /** The envelope, byte for byte. */
  readonly body: string
  readonly url: string
  readonly secret: string
}

/** What became of an attempt. `cut`: this process stops, and nobody can say whether it arrived. */
export type AttemptResult =
  | { readonly kind: 'acknowledged'; readonly code: number }
  | { readonly kind: 'failed'; readonly code: number | null; readonly error: string; readonly retryAfterMs: number | null }
  | { readonly kind: 'cut' }

/** Error of a receiver that answers 410: it wants no more. */
export const goneError = 'gone'

/** Nobody reads the reply; this much is taken off the connection so that it can be used again. */
const replyMaxBytes = 64 * 1024

/** Sends it once. Never rejects. `stop` ends it immediately. */
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
 * Reads the reply to its end, or only to the bound; later bytes are not waited for. A reply that breaks off, or has a body where none is allowed, still
 * gives its status.
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

/** A code for why there was no answer: nothing of what the other side said is kept. */
function errorCodeOf(thrown: unknown): string {
  // The guard refuses a URL in the words of a caller's mistake.
  if (thrown instanceof GatewayError) return 'blocked_address'
  const code = typeof thrown === 'object' && thrown !== null && 'code' in thrown ? String(thrown.code) : ''
  if (/^(ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|EPROTO)/.test(code)) return 'tls'
  if (thrown instanceof Error && thrown.name === 'HTTPParserError') return 'bad_reply'
  return errorCodes[code] ?? 'connection_failed'
}
