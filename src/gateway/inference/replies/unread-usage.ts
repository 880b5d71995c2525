/** Reads what a reply costs that is beyond the bounds of this gateway, so that nobody parses it. Decision 0492 gives the reasons. */
import { BodyTooLargeError } from '../../../platform/outbound/upstream-body.ts'
import { anyJsonMaxBytes } from '../../wire/json/json-bounds.ts'
import { membersInTurns } from '../../wire/json/json-members.ts'
import type { TokenUsage } from '../../wire/usage.ts'
import type { AttemptContext } from '../attempt/attempt-context.ts'
import { believed, charsPerTokenMax, usageBoundsOf } from '../charge/believed.ts'
import { priceAsNamed } from './served-model.ts'

/**
 * The error of a reply that was made, but is beyond a bound or cannot be translated. `usage` is what the provider reports for it, or null. `errorName`
 * is the error that the caller gets.
 */
export class UnreadReplyError extends BodyTooLargeError {
  readonly usage: TokenUsage | null
  readonly errorName: 'reply_too_large' | 'reply_not_translated'

  constructor(message: string, usage: TokenUsage | null, errorName: 'reply_too_large' | 'reply_not_translated' = 'reply_too_large') {
    super(message)
    this.usage = usage
    this.errorName = errorName
  }
}

/** The members with the usage, by dialect, and the member with the name of the model. */
const readNames: ReadonlySet<string> = new Set(['usage', 'usageMetadata', 'model'])

/** Returns the error of a reply that is not parsed. Its usage is read by a scan in pieces, and the call gets the price of the model that it names. */
export async function unreadReply(bytes: Buffer, message: string, attemptContext: AttemptContext): Promise<UnreadReplyError> {
  const members = await membersInTurns(bytes, readNames)
  const reply = Object.fromEntries([...members].map(([name, value]) => [name, parsedMember(value)]))
  priceAsNamed(reply['model'], attemptContext)
  return new UnreadReplyError(message, billedUsageOf(reply, bytes.length, attemptContext))
}

/**
 * Returns the believed part of the reported usage. The text of the reply was not counted. So its length says nothing against the figures, and the
 * bounds of the request alone limit them. A report without output is no report of a reply that has output.
 */
export function billedUsageOf(reply: Readonly<Record<string, unknown>>, replyBytes: number, { attempt, dialect, context }: AttemptContext): TokenUsage | null {
  const { request, kind } = context
  const claimed = dialect.usageOf(request.operation, reply)
  if (claimed === null || (kind.hasOutput && claimed.completionTokens === 0)) return null
  const shownChars = kind.hasOutput ? Math.min(replyBytes, claimed.completionTokens * charsPerTokenMax) : 0
  return believed(claimed, usageBoundsOf(request, attempt, kind.hasOutput), shownChars)
}

function parsedMember(text: Buffer): unknown {
  if (text.length > anyJsonMaxBytes) return undefined
  try {
    return JSON.parse(text.toString('utf8'))
  } catch {
    return undefined
  }
}
