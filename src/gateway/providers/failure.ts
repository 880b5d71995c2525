import type { Failure } from './dialect.ts'

type ReplyHeaders = Readonly<Record<string, string | string[] | undefined>>

/** Most seconds of a provider's retry-after that are believed. */
const retryAfterMaxSeconds = 86_400

/** What providers write when the account of a credential has no money: codes first, then sentences. */
const billingWords =
  /insufficient_quota|insufficient_credits?|insufficient[_ ]balance|billing_(?:error|hard_limit|not_active)|credit balance|out of credits|exceeded your current quota|payment required|account (?:is )?(?:not active|suspended)|(?:does not|doesn't) have any credits|arrearage/i

/** What providers write beside a 403 when the content is the reason and not the key. */
const moderationWords =
  /flagged|requires moderation|content[_ -](?:policy|filter|moderation|violation|violates)|violat\w{0,10} (?:of )?(?:the |our )?(?:usage|content)|usage guidelines|safety[_ ]check|inappropriate content|data_inspection/i

/**
 * Classifies a non-2xx reply of a provider. 400, 404, 422, and 403 with words of moderation, are the caller's own; 402, and 403 or 429 with
 * billing words, are money; 401 and 403 are the credential; 408, 409, 425 and 5xx may pass by themselves. Every other 4xx is of this route
 * alone: another one may take the request. Decision 0032 says why.
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

/** Whole seconds of `retry-after-ms` or `retry-after`, at least 1; null when absent. The date form counts as absent: time is not read here. */
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
