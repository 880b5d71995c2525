/** Makes one request to an image provider and reads the reply. When the reply is a job, it polls the job until its end. Decision 0166 gives the reasons. */
import { GatewayError } from '../../../platform/errors.ts'
import { BodyTooLargeError, type OutboundReply } from '../../../platform/outbound/upstream-body.ts'
import type { Failure, Target } from '../../providers/dialect.ts'
import { classifyFailure } from '../../providers/failure.ts'
import type { ImageOutcome, ImageReply, ImageStyle, Job } from '../../providers/image-style.ts'
import { publicMessage } from '../../providers/public-message.ts'
import type { Attempt } from '../../routing/plan.ts'
import { operatorBounds } from '../../wire/json/json-bounds.ts'
import { readRefusal } from '../attempt/refusals.ts'
import { send } from '../attempt/send.ts'
import type { InferenceDeps } from '../deps.ts'
import type { ImagesRequest } from '../kinds/media/images-request.ts'
import type { ClientError, Failed, ReplyHeaders } from '../replies/answer.ts'
import { decodedReply } from '../replies/decoded-reply.ts'
import type { ReplyRoom } from '../replies/reply-room.ts'
import type { ImageRequestOf } from './image-requests.ts'
import { lightReplyBytes, objectInTurns } from './json-reply.ts'

/** The most polls in a row that may fail because the connection breaks. */
const brokenLooksMax = 5
/** The time limit for the request that cancels a job. */
const cancelTimeoutMs = 5000

export interface ImageJobContext {
  readonly attempt: Attempt
  readonly style: ImageStyle
  readonly target: Target
  readonly request: ImagesRequest
  /** Aborts when the call ends and at the deadline. */
  readonly signal: AbortSignal
  /** The room for the replies of all requests of the attempt. */
  readonly room: ReplyRoom
  readonly orgId: number
  readonly deps: InferenceDeps
}

/** The result of one request. */
export type Drawn =
  | {
      readonly kind: 'images'
      readonly made: Extract<ImageOutcome, { kind: 'images' }>
      readonly dropped: readonly string[]
      readonly replyHeaders: ReplyHeaders
    }
  | ClientError
  | Failed

/** Asks for `n` pictures. Rejects with the signal's reason, the connection's error or the errors of `requestOf`. */
export async function draw(n: number, requestOf: ImageRequestOf, context: ImageJobContext): Promise<Drawn> {
  const { attempt, style, target, request, signal, room, deps } = context
  const made = requestOf(n)
  const outgoing = made instanceof Promise ? await made : made
  const reply = decodedReply(await send(attempt, outgoing, signal, deps), attempt.route.provider.userGiven === true)
  if (!isSuccess(reply)) return readRefusal(reply, attempt, { failure: classifyFailure }, request)
  const given = await read(reply, context)
  const first = style.reply(given, target)
  if (first.kind === 'job') room.giveBack(given.bytes.length)
  const outcome = first.kind === 'job' ? await finish(first.job, context) : first
  if (outcome.kind === 'images') return { kind: 'images', made: outcome, dropped: outgoing.dropped, replyHeaders: reply.headers }
  return outcome.kind === 'failed' ? failedOf(outcome.failure, outcome.message, context) : failedOf(noEnd, 'it began a job inside a job', context)
}

const noEnd: Failure = { kind: 'transient', status: null }
const isSuccess = ({ status }: OutboundReply): boolean => status >= 200 && status < 300

/** Reads a reply. A long one is parsed here, in turns of the event loop. A style parses shorter ones itself. */
async function read({ headers, body }: OutboundReply, { room, orgId, deps }: ImageJobContext): Promise<ImageReply> {
  const bytes = await room.read(body)
  // Some providers answer with the picture itself.
  const isParsed = bytes.length > lightReplyBytes && !String(headers['content-type'] ?? '').startsWith('image/')
  return isParsed ? { headers, bytes, object: await objectInTurns(bytes, operatorBounds, { orgId, deps }) } : { headers, bytes }
}

/** Polls a job until its end. When the job is given up before, the provider is asked to cancel it if its API can. */
async function finish(job: Job, context: ImageJobContext): Promise<ImageOutcome> {
  let broken = 0
  try {
    for (;;) {
      await context.deps.clock.sleep(context.deps.images.pollMs, context.signal)
      try {
        const outcome = await look(job, context)
        if (outcome.kind !== 'pending') return outcome
        broken = 0
      } catch (error) {
        // A broken connection does not end the job. A connection that breaks too often does.
        if (context.signal.aborted || error instanceof GatewayError || error instanceof BodyTooLargeError || ++broken > brokenLooksMax) throw error
      }
    }
  } catch (error) {
    if (job.cancelUrl !== null) cancel(job.cancelUrl, job, context)
    throw error
  }
}

async function look(job: Job, context: ImageJobContext): Promise<ImageOutcome> {
  const { attempt, style, signal, room, deps } = context
  const reply = decodedReply(
    await send(attempt, { method: 'GET', url: job.url, headers: job.headers }, signal, deps),
    attempt.route.provider.userGiven === true,
  )
  if (isSuccess(reply)) {
    const given = await read(reply, context)
    const outcome = style.poll?.(given) ?? { kind: 'failed', failure: noEnd, message: 'it began a job, which nobody expected' }
    if (outcome.kind === 'pending') room.giveBack(given.bytes.length)
    return outcome
  }
  reply.body.destroy()
  // A poll that fails for a moment does not end the job. The deadline does.
  if (reply.status === 429 || reply.status >= 500) return { kind: 'pending' }
  return { kind: 'failed', failure: { kind: 'transient', status: reply.status }, message: `asked for its job it answered ${reply.status}` }
}

/** Asks the provider to cancel a job, in the background. The result does not matter to the caller. */
function cancel(url: string, { headers }: Job, { attempt, deps }: ImageJobContext): void {
  const late = new AbortController()
  const stop = deps.clock.after(cancelTimeoutMs, () => late.abort())
  send(attempt, { method: 'POST', url, headers, body: '' }, late.signal, deps)
    .then(reply => reply.body.destroy())
    .catch(() => {})
    .finally(stop)
}

/** Returns a provider's error inside a 2xx reply, as the caller reads it. The message does not quote the prompt. */
function failedOf(failure: Failure, message: string, { attempt, request }: ImageJobContext): ClientError | Failed {
  const { id } = attempt.route.provider
  const said = `${id}: ${publicMessage(message, attempt.credential, request.native.body)}`
  if (failure.kind !== 'client') return { kind: 'failed', attempt, failure, message: said }
  const error = {
    message: `${id} refused the request: ${said.slice(id.length + 2)}`,
    type: 'invalid_request_error',
    code: 'upstream_client_error',
    param: null,
  }
  return { kind: 'client-error', attempt, status: failure.status, bytes: Buffer.from(JSON.stringify({ error })) }
}
