import type { Failure } from './dialect.ts'

type ReplyHeaders = Readonly<Record<string, string | string[] | undefined>>

/** Maximum retry-after in seconds that the gateway accepts from a provider. Longer values are reduced to it. */
const retryAfterMaxSeconds = 86_400

/** Matches what providers write when the account of a credential has no money: first codes, then sentences. */
const billingWords =
  /insufficient_quota|insufficient_credits?|insufficient[_ ]balance|billing_(?:error|hard_limit|not_active)|credit balance|out of credits|exceeded your current quota|payment required|account (?:is )?(?:not active|suspended)|(?:does not|doesn't) have any credits|arrearage/i

/** Matches what providers write with a 403 when they refuse the content and not the key. */
const moderationWords =
  /flagged|requires moderation|content[_ -](?:policy|filter|moderation|violation|violates)|violat\w{0,10} (?:of )?(?:the |our )?(?:usage|content)|usage guidelines|safety[_ ]check|inappropriate content|data_inspection/i

/**
 * Classifies a non-2xx reply of a provider. 400, 404, 422, and 403 with moderation words, are the caller's fault. 402, and 403 or 429 with billing
 * words, mean that the account has no money. Other 401 and 403 replies mean a bad credential. 408, 409, 425 and 5xx may be temporary. Every other 4xx
 * concerns only this route, and another route may accept the request. Decision 0032 gives the reasons.
 */
export function classifyFailure(status: number, headers: ReplyHeaders, bodyText: string): Failure {
  if (status === 402) return { kind: 'billing', status }
  if ((status === 429 || status === 403) && billingWords.test(bodyText)) return { kind: 'billing', status }
  if (status === 429) return { kind: 'rate-limited', status, retryAfterSeconds: retryAfterSeconds(headers) }
  if (status === 403 && moderationWords.test(bodyText)) return { kind: 'client', status }
  if (status === 401 || status === 403) return { kind: 'credential', status }
  if (status === 408 || status === 409 || status === 425 || status >= 500 || status < 400) return { kind: 'transient', status }
  return { kind: status === 400 || status === 404 || status === 422 ? 'client' : 'declined', status }
}

/**
 * Returns whole seconds of `retry-after-ms` or `retry-after`, at least 1. Returns null if both are missing. A date counts as missing, because this
 * code does not read the clock.
 */
function retryAfterSeconds(headers: ReplyHeaders): number | null {
  const inMs = positive(headers['retry-after-ms'])
  const seconds = inMs === null ? positive(headers['retry-after']) : inMs / 1000
  return seconds === null ? null : Math.min(retryAfterMaxSeconds, Math.max(1, Math.ceil(seconds)))
}

function positive(value: string | string[] | undefined): number | null {
  const text = Array.isArray(value) ? value[0] : value
  if (text === undefined || text.trim() === '') return null
  const number = Number(text)
  return Number.isFinite(number) && number >= 0 ? number : null
}
