import type { IncomingMessage, ServerResponse } from 'node:http'
import { networkOf } from '../../platform/address-ranges.ts'
import type { Clock } from '../../platform/clock.ts'
import { fail, GatewayError } from '../../platform/errors.ts'
import type { DeviceCookies } from './device-cookie.ts'

export interface AnonymousLimitDeps {
  readonly clock: Clock
  /** ANON_RPM. */
  readonly perMinute: number
  readonly cookies: DeviceCookies
  clientIp(request: IncomingMessage): string
}

/** Senders counted in one minute; the one not seen for longest is forgotten first. Ours: a few megabytes at most. */
const sendersMax = 50_000
/** All browsers behind one address together may do so many times what one of them may. */
const sharedAddressFactor = 10
const minuteMs = 60_000

/**
 * How often somebody without a valid credential may call in a clock minute: per browser that shows a device cookie of ours, per address
 * (IPv6: /64) otherwise. Counted in memory, by each process for itself. The counts of a minute go when a later one begins, so there is
 * no timer, and their number has a bound.
 */
export class AnonymousLimit {
  readonly #deps: AnonymousLimitDeps
  #minute = 0
  #counts = new Map<string, number>()

  constructor(deps: AnonymousLimitDeps) {
    this.#deps = deps
  }

  /**
   * Counts one request. Throws `rate_limit_exceeded` with the seconds to the end of the minute. A browser without a cookie gets one
   * with the reply, when there is a response to set it on.
   */
  count(request: IncomingMessage, response?: ServerResponse): void {
    const nowMs = this.#deps.clock.nowMs()
    this.#turnTo(Math.floor(nowMs / minuteMs))
    const { cookies, perMinute } = this.#deps
    const network = networkOf(this.#deps.clientIp(request)) ?? 'unknown'
    const device = cookies.read(request.headers.cookie)
    const sender = device === null ? `address ${network}` : `device ${device}`
    const all = `all of ${network}`
    if (this.#of(sender) >= perMinute || this.#of(all) >= perMinute * sharedAddressFactor) throw tooMany(nowMs)
    const count = this.#of(sender) + 1
    this.#set(sender, count)
    this.#set(all, this.#of(all) + 1)
    if (device !== null || response === undefined) return
    const issued = cookies.issue(request.headers, network)
    if (issued === null) return
    // The count moves along: who throws the cookie away, or takes a new one, is not better off.
    this.#set(`device ${issued.device}`, count)
    response.appendHeader('set-cookie', issued.setCookie)
  }

  #turnTo(minute: number): void {
    if (minute === this.#minute) return
    this.#minute = minute
    this.#counts = new Map()
  }

  #of(sender: string): number {
    return this.#counts.get(sender) ?? 0
  }

  /** A Map keeps the order of insertion: taken out and put in again, the newest stands last. */
  #set(sender: string, count: number): void {
    this.#counts.delete(sender)
    this.#counts.set(sender, count)
    if (this.#counts.size <= sendersMax) return
    for (const oldest of this.#counts.keys()) {
      this.#counts.delete(oldest)
      return
    }
  }
}

function tooMany(nowMs: number): GatewayError {
  return fail('rate_limit_exceeded', {
    message: 'Too many requests without a valid credential in this minute. Send an API key or agent token: calls with one are not counted here.',
    retryAfterSeconds: Math.ceil((minuteMs - (nowMs % minuteMs)) / 1000),
  })
}

/** Whether a request that was refused so counts as anonymous. A token that we signed is no stranger, though it has ended: it hears why, however many of them there are. */
export function isOfStranger(refusal: unknown): boolean {
  if (!(refusal instanceof GatewayError) || refusal.status !== 401) return false
  const reason = refusal.options.extra?.['reason']
  return reason === undefined || reason === 'token_invalid'
}
