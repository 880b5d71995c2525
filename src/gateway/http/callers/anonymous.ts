import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../../../platform/clock.ts'
import { fail, GatewayError } from '../../../platform/errors.ts'
import { networkOf } from '../../../platform/outbound/address-ranges.ts'
import type { DeviceCookies } from './device-cookie.ts'
import { MinuteCounts, secondsLeftOf } from './minute-counts.ts'

export interface AnonymousLimitDeps {
  readonly clock: Clock
  /** ANON_RPM. */
  readonly perMinute: number
  readonly cookies: DeviceCookies
  clientIp(request: IncomingMessage): string
}

/** All browsers at one address together may send this many times as many requests as one browser. */
const sharedAddressFactor = 10

/**
 * A limit of requests per clock minute for callers without a valid credential. A caller with a device cookie of this gateway counts as a browser. All
 * others count by address (IPv6: by /64). Each process counts for itself, in memory. Decision 0112 says why.
 */
export class AnonymousLimit {
  readonly #deps: AnonymousLimitDeps
  readonly #counts = new MinuteCounts()

  constructor(deps: AnonymousLimitDeps) {
    this.#deps = deps
  }

  /**
   * Counts one request. Throws `rate_limit_exceeded` with the seconds to the end of the minute. When `response` is given, a browser without a device cookie
   * gets one.
   */
  count(request: IncomingMessage, response?: ServerResponse): void {
    const nowMs = this.#deps.clock.nowMs()
    const { cookies, perMinute } = this.#deps
    const network = networkOf(this.#deps.clientIp(request)) ?? 'unknown'
    const device = cookies.read(request.headers.cookie)
    const sender = device === null ? `address ${network}` : `device ${device}`
    const all = `all of ${network}`
    if (this.#counts.of(sender, nowMs) >= perMinute || this.#counts.of(all, nowMs) >= perMinute * sharedAddressFactor) throw tooMany(nowMs)
    const count = this.#counts.of(sender, nowMs) + 1
    this.#counts.set(sender, count)
    this.#counts.set(all, this.#counts.of(all, nowMs) + 1)
    if (device !== null || response === undefined) return
    const issued = cookies.issue(request.headers, network)
    if (issued === null) return
    // The new cookie starts with the count of its sender, so a browser gains nothing by discarding the cookie or taking a new one.
    this.#counts.set(`device ${issued.device}`, count)
    response.appendHeader('set-cookie', issued.setCookie)
  }
}

function tooMany(nowMs: number): GatewayError {
  return fail('rate_limit_exceeded', {
    message: 'Too many requests without a valid credential in this minute. Send an API key or agent token: calls with one are not counted here.',
    retryAfterSeconds: secondsLeftOf(nowMs),
  })
}

/**
 * Returns true when a refused request counts as anonymous. A request with an expired or revoked token of this gateway does not count, so its caller always
 * learns the reason.
 */
export function isOfStranger(refusal: unknown): boolean {
  if (!(refusal instanceof GatewayError) || refusal.status !== 401) return false
  const reason = refusal.options.extra?.['reason']
  return reason === undefined || reason === 'token_invalid'
}
