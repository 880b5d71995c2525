/** How long Brigade waits for a reply that comes whole: its first byte comes when all of it is made. Decision 0483 says why. */
import type { Model } from '../../catalog/model.ts'
import { outputCeiling } from '../charge/estimate.ts'
import type { InferenceDeps } from '../deps.ts'
import type { Kind } from '../kinds/kind.ts'
import type { ParsedRequest } from '../kinds/request.ts'

/** The slowest model that is waited for, in tokens of output a second. */
const slowestTokensPerSecond = 20

export interface ReplyWait {
  readonly ms: number
  /** The output that was asked for may take longer: a provider that does not answer in time may still be at work. */
  readonly isShort: boolean
}

/** The wait for the first byte of a whole reply with output; null: a stream, or a reply without output, which has the timeout of every request. */
export function replyWait(
  kind: Pick<Kind, 'hasOutput'>,
  request: Pick<ParsedRequest, 'stream' | 'maxTokens' | 'answers'>,
  model: Pick<Model, 'maxOutputTokens'>,
  { firstByteMs, wholeReplyMs }: InferenceDeps['timeouts'],
): ReplyWait | null {
  if (request.stream || !kind.hasOutput) return null
  const neededMs = firstByteMs + Math.ceil((outputCeiling(request, model) * 1000) / slowestTokensPerSecond)
  const longestMs = Math.max(firstByteMs, wholeReplyMs)
  return { ms: Math.min(neededMs, longestMs), isShort: neededMs > longestMs }
}
