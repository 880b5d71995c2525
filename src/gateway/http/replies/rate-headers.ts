/** Writes the requests and tokens that a caller has left into the headers of a reply, in the form of the caller's client. Decision 0802 gives the reasons. */
import type { BearerPrincipal } from '../../../platform/security/principal.ts'
import { anthropicRateHeader, anthropicTokenHeader, openaiRateHeader, openaiTokenHeader, rateFieldHeader } from '../../wire/response-headers.ts'

const [secondMs, minuteSeconds, hourSeconds, daySeconds] = [1000, 60, 3600, 86_400]

/** The tightest limit of a period. `limit` is null when there is none. */
export interface PeriodLeft {
  readonly limit: number | null
  readonly left: number
  readonly endsAtMs: number
}

/** What a caller has left at the time `nowMs`. `tightest` is the period whose limit of requests the caller reaches first. `tokens` are those of the minute. */
export interface CallerRates {
  readonly nowMs: number
  readonly minute: PeriodLeft
  readonly day: PeriodLeft
  readonly tightest: PeriodLeft | null
  readonly tokens: PeriodLeft
}

export interface RateHeadersOptions {
  /** Returns what the caller has left, or null without limits of requests and tokens. */
  readonly requestsLeft: (principal: BearerPrincipal) => CallerRates | null
  /** RATELIMIT_FIELDS. */
  readonly withFields: boolean
}

/** The names of the headers of one limit. */
interface Names {
  readonly limit: string
  readonly remaining: string
  readonly reset: string
}

/** The headers that a reply has already. */
type Given = Readonly<Record<string, string>>

/** The headers of rates. They cost a caller without limits one look-up. */
export class RateHeaders {
  readonly #options: RateHeadersOptions
  #shownEndMs = Number.NaN
  #shownEnd = ''

  constructor(options: RateHeadersOptions) {
    this.#options = options
  }

  /** Appends the names and values to a flat list. `given` are the headers of the reply. */
  addTo(list: string[], principal: BearerPrincipal, isAnthropic: boolean, given: Given | null): void {
    const left = this.#options.requestsLeft(principal)
    if (left === null) return
    const { tightest, tokens, nowMs } = left
    if (!isAnthropic) {
      if (tightest !== null) addOpenAi(list, openaiRateHeader, tightest, nowMs)
      if (tokens.limit !== null) addOpenAi(list, openaiTokenHeader, tokens, nowMs)
    } else if (given === null || !isRelayed(given)) {
      if (tightest !== null) this.#addAnthropic(list, anthropicRateHeader, tightest)
      if (tokens.limit !== null) this.#addAnthropic(list, anthropicTokenHeader, tokens)
    }
    if (tightest !== null && this.#options.withFields) addFields(list, left)
  }

  #addAnthropic(list: string[], { limit: limitName, remaining, reset }: Names, { limit, left, endsAtMs }: PeriodLeft): void {
    list.push(limitName, String(limit), remaining, String(left), reset, this.#timeText(endsAtMs))
  }

  /** Returns an instant in the form of RFC 3339. Periods end at whole seconds, and all calls of a minute have the same end. */
  #timeText(ms: number): string {
    if (ms !== this.#shownEndMs) {
      this.#shownEndMs = ms
      this.#shownEnd = `${new Date(ms).toISOString().slice(0, -'.000Z'.length)}Z`
    }
    return this.#shownEnd
  }
}

function addOpenAi(list: string[], { limit: limitName, remaining, reset }: Names, { limit, left, endsAtMs }: PeriodLeft, nowMs: number): void {
  list.push(limitName, String(limit), remaining, String(left), reset, durationText(endsAtMs - nowMs))
}

function addFields(list: string[], { minute, day, nowMs }: CallerRates): void {
  const { policy, state } = rateFieldHeader
  const policies = [fieldOf(minute, 'rpm', 'q', minute.limit, 'w', minuteSeconds), fieldOf(day, 'day', 'q', day.limit, 'w', daySeconds)]
  const states = [fieldOf(minute, 'rpm', 'r', minute.left, 't', secondsTo(minute, nowMs)), fieldOf(day, 'day', 'r', day.left, 't', secondsTo(day, nowMs))]
  list.push(policy, joined(policies), state, joined(states))
}

/** Returns an item of the structured fields: a quoted name with two parameters. Empty when the limit does not exist. */
const fieldOf = ({ limit }: PeriodLeft, name: string, first: string, value: number | null, second: string, seconds: number): string =>
  limit === null ? '' : `"${name}";${first}=${value};${second}=${seconds}`

const joined = ([minute = '', day = '']: readonly string[]): string => (minute === '' ? day : day === '' ? minute : `${minute}, ${day}`)

const secondsTo = ({ endsAtMs }: PeriodLeft, nowMs: number): number => Math.max(0, Math.ceil((endsAtMs - nowMs) / secondMs))

/**
 * Returns a duration as Go writes it, which is the form of OpenAI: `12ms`, `17s`, `1m30s`, `6m0s`, `11h0m5s`. Fractions of a second are rounded up, so that
 * nobody comes back too early.
 */
export function durationText(durationMs: number): string {
  const ms = Math.max(0, Math.ceil(durationMs))
  if (ms < secondMs) return ms === 0 ? '0s' : `${ms}ms`
  const seconds = Math.ceil(ms / secondMs)
  const [hours, minutes, rest] = [Math.floor(seconds / hourSeconds), Math.floor((seconds % hourSeconds) / minuteSeconds), seconds % minuteSeconds]
  if (hours > 0) return `${hours}h${minutes}m${rest}s`
  return minutes > 0 ? `${minutes}m${rest}s` : `${rest}s`
}

/** Returns true when the reply of Anthropic is relayed to a caller with a credential of its own. Those headers are about the caller's account there. */
function isRelayed(given: Given): boolean {
  for (const name in given) if (name.startsWith('anthropic-') || name === 'request-id') return true
  return false
}
