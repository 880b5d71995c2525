/** How long Brigade waits for a reply that comes whole: its first byte comes when all of it is made. Decision 0483 says why. */
import type { Attempt } from '../../routing/plan.ts'
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

/** The slowest transcription that is waited for, in seconds of sound a second. */
const slowestSoundSpeed = 10

/**
 * Returns the wait for the first byte of a whole reply whose making takes time: with output, or of a recording. Null for a stream and for other replies,
 * which have the timeout of every request.
 */
export function replyWait(
  { hasOutput }: Pick<Kind, 'hasOutput'>,
  request: Pick<ParsedRequest, 'stream' | 'maxTokens' | 'answers' | 'media' | 'asksThought'>,
  attempt: Pick<Attempt, 'route' | 'model'>,
  { firstByteMs, wholeReplyMs }: InferenceDeps['timeouts'],
): ReplyWait | null {
  const workSeconds = hasOutput
    ? outputCeiling(request, attempt) / request.answers / slowestTokensPerSecond
    : (request.media?.audioSeconds ?? 0) / slowestSoundSpeed
  if (request.stream || workSeconds === 0) return null
  const neededMs = firstByteMs + Math.ceil(workSeconds * 1000)
  const longestMs = Math.max(firstByteMs, wholeReplyMs)
  return { ms: Math.min(neededMs, longestMs), isShort: neededMs > longestMs }
}
