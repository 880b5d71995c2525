/** One attempt of a call that scores texts: JSON to the provider and JSON back. */
import type { OutboundReply } from '../../../platform/outbound/upstream-body.ts'
import type { UpstreamRequest } from '../../providers/dialect.ts'
import { classifyFailure } from '../../providers/failure.ts'
import { type FieldRules, heldBack } from '../../providers/format-fields.ts'
import type { ScoreTarget } from '../../providers/scores/rerank-styles.ts'
import type { Attempt } from '../../routing/plan.ts'
import { operatorBounds } from '../../wire/json/json-bounds.ts'
import { brHeader, headerValue } from '../../wire/response-headers.ts'
import type { TokenUsage } from '../../wire/usage.ts'
import { readRefusal } from '../attempt/refusals.ts'
import { send } from '../attempt/send.ts'
import { written } from '../attempt/written.ts'
import { writtenInTurns } from '../attempt/written-slices.ts'
import type { PerformContext } from '../kinds/kind.ts'
import type { ClientError, Failed, Performed } from '../replies/answer.ts'
import { decodedReply } from '../replies/decoded-reply.ts'
import { objectInTurns } from './json-reply.ts'

/** The largest reply, in bytes. A score of a document takes some fifty bytes. */
const replyMaxBytes = 8 * 1024 * 1024
const listStart = /^\s*\[/

/** A reply with success that is a JSON object. */
export interface ScoreReply {
  readonly kind: 'read'
  readonly value: Record<string, unknown>
  readonly bytes: Buffer
  readonly reply: OutboundReply
  readonly headers: Readonly<Record<string, string>>
}

/** Returns the names of the fields that do not go to a provider on the operator's key. */
export const withheldNames = (body: Readonly<Record<string, unknown>>, rules: FieldRules, { byok, route: { provider } }: Attempt): readonly string[] =>
  byok ? [] : heldBack(body, rules, provider)

/**
 * Sends the request that `write` makes, and reads the reply. A reply that is a list becomes the member `results` of an object. `withheld` are names that the
 * reply mentions as not sent.
 */
export async function scoreCall(
  attempt: Attempt,
  context: PerformContext,
  withheld: readonly string[],
  write: (target: ScoreTarget) => UpstreamRequest,
): Promise<ScoreReply | ClientError | Failed> {
  const { request, deps, orgId, signal } = context
  const { inTurn, exact } = deps
  const { provider, upstreamModel } = attempt.route
  const target = { provider, upstreamModel, credential: attempt.credential, ...(inTurn === undefined ? {} : { writesLater: true }) }
  const make = (): UpstreamRequest => write(target)
  const outgoing = inTurn === undefined ? written(make) : await writtenInTurns(make, exact !== undefined, work => inTurn(work, signal))
  const reply = decodedReply(await send(attempt, outgoing, signal, deps), provider.userGiven === true)
  if (reply.status < 200 || reply.status >= 300) return readRefusal(reply, attempt, { failure: classifyFailure }, request)
  const bytes = await deps.heldReplies.run(orgId, async room => reply.body.buffer(replyMaxBytes, room))
  const isList = listStart.test(bytes.subarray(0, 64).toString('latin1'))
  const value = await objectInTurns(isList ? Buffer.concat([Buffer.from('{"results":'), bytes, Buffer.from('}')]) : bytes, operatorBounds, context)
  if (value === null) return failedScore(attempt, reply.status, `answered ${reply.status} with no JSON object`)
  const dropped = [...withheld, ...outgoing.dropped]
  return { kind: 'read', value, bytes, reply, headers: dropped.length === 0 ? {} : { [brHeader.droppedParams]: headerValue(dropped.join(',')) } }
}

/** Returns the attempt as answered. */
export function scoreAnswer(attempt: Attempt, { reply, headers }: ScoreReply, body: Uint8Array, usage: TokenUsage, estimated: boolean): Performed {
  const typed = { 'content-type': 'application/json; charset=utf-8', ...headers }
  return { answer: { kind: 'whole', attempt, headers: typed, usage, estimated, body }, replyHeaders: reply.headers }
}

/** Returns a failure after which another route may serve the call. */
export const failedScore = (attempt: Attempt, status: number, what: string): Failed => ({
  kind: 'failed',
  attempt,
  failure: { kind: 'transient', status },
  message: `${attempt.route.provider.id} ${what}`,
})
