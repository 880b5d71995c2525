/** Attempts of image calls. An attempt is one request to the provider, or several concurrent requests when the provider draws one picture at a time. */
import { abortSignalOf } from '../../../platform/loop/cancellation.ts'
import type { Target } from '../../providers/dialect.ts'
import type { MadeImage } from '../../providers/image-style.ts'
import { imageStyleOf } from '../../providers/image-styles.ts'
import type { Attempt } from '../../routing/plan.ts'
import { isToldPlain } from '../../wire/images.ts'
import { brHeader, headerValue } from '../../wire/response-headers.ts'
import { noUsage } from '../../wire/usage.ts'
import type { PerformContext, Performer } from '../kinds/kind.ts'
import { ImagesRequest } from '../kinds/media/images-request.ts'
import type { ClientError, Failed, Performed, WholeAnswer } from '../replies/answer.ts'
import { ReplyRoom } from '../replies/reply-room.ts'
import { type Drawn, draw } from './image-job.ts'
import { imageRequests } from './image-requests.ts'
import { jsonInTurns } from './json-reply.ts'
import { withheldParams } from './withheld-media.ts'

/** The most bytes of all replies of one attempt: four large pictures as base64. */
const repliesMaxBytes = 64 * 1024 * 1024
/** The most bytes of all replies of one attempt at an own server. */
const ownRepliesMaxBytes = 32 * 1024 * 1024

/** The provider took too long. */
class DeadlineError extends Error {
  override readonly name = 'DeadlineError'
}

/** Makes one attempt. It always ends at the deadline. */
export const performImages: Performer = async (attempt, context) => {
  const { request, deps } = context
  if (!(request instanceof ImagesRequest)) throw new Error('images are drawn for image requests only')
  request.checkFor(attempt)
  const style = imageStyleOf(attempt.route.imageStyle ?? attempt.route.provider.imageStyle ?? 'openai')
  const target = targetOf(attempt)
  const deadline = new AbortController()
  const stop = deps.clock.after(deps.images.deadlineMs, () => deadline.abort(new DeadlineError()))
  const signal = AbortSignal.any([abortSignalOf(context.signal), deadline.signal])
  try {
    const { params, dropped } = withheldParams(request.params, attempt)
    const batches = split(params.n, style.imagesPerRequest(target))
    const requestOf = imageRequests(params, { style, target, signal, deps })
    const maxBytes = attempt.route.provider.userGiven === true ? ownRepliesMaxBytes : repliesMaxBytes
    return await deps.heldReplies.run(context.orgId, async held => {
      const room = new ReplyRoom(maxBytes, held)
      const ends = await Promise.allSettled(batches.map(n => draw(n, requestOf, { attempt, style, target, request, signal, room, orgId: context.orgId, deps })))
      // Pictures that came before the end of the call are made, so they are charged.
      if (context.signal.aborted && !ends.some(isDrawn)) throw context.signal.reason
      return await together(ends, dropped, attempt, request, { ...context, replyBytes: room.keptBytes })
    })
  } finally {
    stop()
  }
}

const isDrawn = (end: PromiseSettledResult<Drawn>): boolean => end.status === 'fulfilled' && end.value.kind === 'images'

function targetOf({ route, model, credential }: Attempt): Target {
  return { provider: route.provider, upstreamModel: route.upstreamModel, credential, forwarded: null, traits: model }
}

/** Splits a number of pictures into requests of at most `most` pictures. */
function split(count: number, most: number): number[] {
  return Array.from({ length: Math.ceil(count / most) }, (_, index) => Math.min(most, count - index * most))
}

/** The context of the results. `replyBytes` is the length of all replies together. */
type Together = Pick<PerformContext, 'orgId' | 'deps'> & { readonly replyBytes: number }

/**
 * Combines the results of the requests. Drawn pictures count, even when other requests failed. Without any picture, a refusal of the request
 * comes before a failure of the provider.
 */
function together(
  ends: readonly PromiseSettledResult<Drawn>[],
  withheld: readonly string[],
  attempt: Attempt,
  request: ImagesRequest,
  context: Together,
): Performed | Promise<Performed> {
  const drawn = ends.flatMap(end => (end.status === 'fulfilled' ? [end.value] : []))
  const good = drawn.filter(one => one.kind === 'images')
  const [first] = good
  if (first !== undefined) return answerOf(good, withheld, attempt, request, context).then(answer => ({ answer, replyHeaders: first.replyHeaders }))
  const refusal = drawn.find((one): one is ClientError => one.kind === 'client-error') ?? drawn.find((one): one is Failed => one.kind === 'failed')
  if (refusal !== undefined) return refusal
  const [end] = ends
  const error: unknown = end?.status === 'rejected' ? end.reason : new Error('nothing was asked for')
  if (!(error instanceof DeadlineError)) throw error
  const message = `${attempt.route.provider.id} did not finish the image within ${context.deps.images.deadlineMs / 1000} s`
  return { kind: 'failed', attempt, failure: { kind: 'transient', status: null }, message }
}

/** Returns the requested media, corrected by the replies that describe their pictures. A picture that was requested as dear stays dear. */
function mediaOf(good: readonly Good[], { open, ...asked }: ImagesRequest['media']): ImagesRequest['media'] {
  if (open === undefined) return asked
  const told = good.map(({ made: { whole } }) => (whole === null ? null : isToldPlain(whole)))
  if (told.includes(false)) return { ...asked, dear: true }
  return told.includes(null) ? { ...asked, open } : asked
}

type Good = Extract<Drawn, { kind: 'images' }>

async function answerOf(good: readonly Good[], withheld: readonly string[], attempt: Attempt, request: ImagesRequest, context: Together): Promise<WholeAnswer> {
  // The reply has at most the requested number of pictures, for which the hold was made.
  const data: readonly MadeImage[] = good.flatMap(one => one.made.images).slice(0, request.params.n)
  const whole = good.length === 1 ? (good[0]?.made.whole ?? null) : null
  const created = Number.isInteger(whole?.['created']) ? whole?.['created'] : Math.floor(context.deps.clock.nowMs() / 1000)
  const dropped = [...new Set([...withheld, ...good.flatMap(one => one.dropped)])]
  const usage = { ...noUsage, media: { ...mediaOf(good, request.media), images: data.length } }
  return {
    kind: 'whole',
    attempt,
    headers: {
      'content-type': 'application/json; charset=utf-8',
      ...(dropped.length === 0 ? {} : { [brHeader.droppedParams]: headerValue(dropped.join(',')) }),
    },
    usage,
    estimated: false,
    body: await jsonInTurns({ ...whole, created, data }, context.replyBytes, context),
  }
}
