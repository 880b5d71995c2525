/** Attempts of audio calls: transcriptions and speech. */
import type { OutboundReply } from '../../../platform/outbound/upstream-body.ts'
import type { SpeechCall, TranscriptionCall } from '../../providers/audio/audio-style.ts'
import { audioStyleOf } from '../../providers/audio-styles.ts'
import type { UpstreamRequest } from '../../providers/dialect.ts'
import { classifyFailure } from '../../providers/failure.ts'
import type { Attempt } from '../../routing/plan.ts'
import { operatorBounds } from '../../wire/json/json-bounds.ts'
import { brHeader, headerValue } from '../../wire/response-headers.ts'
import { noUsage, type TokenUsage } from '../../wire/usage.ts'
import { readRefusal } from '../attempt/refusals.ts'
import { send } from '../attempt/send.ts'
import { written } from '../attempt/written.ts'
import { writtenInTurns } from '../attempt/written-slices.ts'
import type { PerformContext, Performer } from '../kinds/kind.ts'
import { SpeechRequest, TranscriptionRequest } from '../kinds/media/audio-requests.ts'
import type { BytesReading, Failed, Performed, WholeAnswer } from '../replies/answer.ts'
import { decodedReply } from '../replies/decoded-reply.ts'
import { replyWait } from '../replies/reply-wait.ts'
import { recordingUsage, SpeechReading, secondsOf, TranscriptReading } from './audio-reading.ts'
import { objectInTurns, transcriptBounds } from './json-reply.ts'
import { withheldSpeech, withheldTranscription } from './withheld-media.ts'

/** The largest transcript and the largest JSON reply with audio, in bytes. */
const transcriptMaxBytes = 16 * 1024 * 1024
const spokenMaxBytes = 64 * 1024 * 1024
/** The largest reply of an own server, in bytes. */
const ownReplyMaxBytes = 8 * 1024 * 1024

const limitOf = ({ route }: Attempt, bytes: number): number => (route.provider.userGiven === true ? Math.min(bytes, ownReplyMaxBytes) : bytes)

/** Makes one attempt of a transcription. */
export const performTranscription: Performer = async (attempt, context) => {
  const { request, deps } = context
  if (!(request instanceof TranscriptionRequest)) throw new TypeError('not a transcription')
  const style = audioStyleOf(attempt.route.provider)
  const boundary = `brigade-${deps.ids.uuidv7(deps.clock.nowMs())}`
  const { call, dropped } = withheldTranscription(request.call, attempt)
  const outgoing = written(() => style.transcription(call, targetOf(attempt), boundary))
  const wait = replyWait(context.kind, request, attempt, deps.timeouts)
  const reply = decodedReply(await send(attempt, outgoing, context.signal, deps, wait?.ms), attempt.route.provider.userGiven === true)
  if (!isSuccess(reply)) return readRefusal(reply, attempt, { failure: classifyFailure }, request)
  const type = typeOf(reply)
  const headers = droppedHeaders([...dropped, ...outgoing.dropped])
  if (type.startsWith('text/event-stream'))
    return passOn(reply, attempt, { ...headers, 'content-type': type }, new TranscriptReading(request.recording), context)
  const bytes = await deps.heldReplies.run(context.orgId, async room => reply.body.buffer(limitOf(attempt, transcriptMaxBytes), room))
  if (!isJson(request.call)) return textAnswer(bytes, type, reply, attempt, headers, request)
  const value = await objectInTurns(bytes, transcriptBounds, context)
  const made = value === null ? null : style.transcript(value)
  if (value === null || made === null || !('text' in made || 'segments' in made))
    return failed(attempt, reply.status, `answered ${reply.status} with no transcript`)
  const seconds = secondsOf(value)
  const body = made === value ? bytes : Buffer.from(JSON.stringify(made))
  const usage = seconds === null ? null : recordingUsage(seconds, request.recording)
  return whole(attempt, { ...headers, 'content-type': made === value ? type : 'application/json; charset=utf-8' }, body, usage, withMedia(request.media), reply)
}

const isJson = ({ responseFormat }: TranscriptionCall): boolean => responseFormat.endsWith('json')

/** The types of pages and programs. A browser must never receive them from the gateway's address. */
const activeType = /html|xml|svg|script/i

/** Returns a transcript as text or subtitles, with the provider's content type. */
function textAnswer(
  bytes: Buffer,
  type: string,
  reply: OutboundReply,
  attempt: Attempt,
  headers: Readonly<Record<string, string>>,
  request: TranscriptionRequest,
): Performed {
  if (activeType.test(type)) return failed(attempt, reply.status, 'answered with a page instead of a transcript')
  return whole(attempt, { ...headers, 'content-type': type === '' ? 'text/plain; charset=utf-8' : type }, bytes, null, withMedia(request.media), reply)
}

/** Makes one attempt of a speech call. */
export const performSpeech: Performer = async (attempt, context) => {
  const { request, deps } = context
  if (!(request instanceof SpeechRequest)) throw new TypeError('not a text to speak')
  const style = audioStyleOf(attempt.route.provider)
  const { call, dropped } = withheldSpeech(withVoice(request.call, attempt), attempt)
  const { inTurn, exact } = deps
  const target = { ...targetOf(attempt), ...(inTurn === undefined ? {} : { writesLater: true }) }
  const write = (): UpstreamRequest => style.speech(call, target)
  const outgoing = inTurn === undefined ? written(write) : await writtenInTurns(write, exact !== undefined, work => inTurn(work, context.signal))
  const reply = decodedReply(await send(attempt, outgoing, context.signal, deps), attempt.route.provider.userGiven === true)
  if (!isSuccess(reply)) return readRefusal(reply, attempt, { failure: classifyFailure }, request)
  const headers = droppedHeaders([...dropped, ...outgoing.dropped])
  const usage = withMedia(request.media)
  if (style.spoken !== null) {
    const bytes = await deps.heldReplies.run(context.orgId, async room => reply.body.buffer(limitOf(attempt, spokenMaxBytes), room))
    const value = await objectInTurns(bytes, operatorBounds, context)
    const audio = value === null ? null : style.spoken(value, call)
    if (audio === null || audio.bytes.length === 0) return failed(attempt, reply.status, `answered ${reply.status} without audio`)
    return whole(attempt, { ...headers, 'content-type': audio.contentType }, audio.bytes, usage, usage, reply)
  }
  const type = typeOf(reply)
  if (!isAudio(type, call)) {
    reply.body.destroy()
    return failed(attempt, reply.status, `answered speech with ${type}`)
  }
  return passOn(
    reply,
    attempt,
    { ...headers, 'content-type': type === '' ? (audioTypes[call.responseFormat] ?? 'application/octet-stream') : type },
    new SpeechReading(usage, type),
    context,
  )
}

/** The content types for a provider that sends none. */
const audioTypes: Readonly<Record<string, string>> = {
  mp3: 'audio/mpeg',
  opus: 'audio/ogg',
  aac: 'audio/aac',
  flac: 'audio/flac',
  wav: 'audio/wav',
  pcm: 'audio/pcm',
}

const isAudio = (type: string, { stream }: SpeechCall): boolean =>
  type === '' || type.startsWith('audio/') || type.startsWith('application/octet-stream') || (stream && type.startsWith('text/event-stream'))

/** Returns the call with the model's default voice when the caller names none. */
function withVoice(call: SpeechCall, { model }: Attempt): SpeechCall {
  const { body } = call
  if ((body['voice'] ?? null) !== null || model.defaultVoice === undefined) return call
  return { ...call, body: { ...body, voice: model.defaultVoice } }
}

const targetOf = ({ route, credential }: Attempt) => ({ provider: route.provider, upstreamModel: route.upstreamModel, credential })
const isSuccess = ({ status }: OutboundReply): boolean => status >= 200 && status < 300
const typeOf = ({ headers }: OutboundReply): string => String(headers['content-type'] ?? '')
const withMedia = (media: NonNullable<TokenUsage['media']>): TokenUsage => ({ ...noUsage, media })

function droppedHeaders(dropped: readonly string[]): Readonly<Record<string, string>> {
  return dropped.length === 0 ? {} : { [brHeader.droppedParams]: headerValue(dropped.join(',')) }
}

/** Returns the reply once its first bytes are here. Until then another route can still serve the call. */
async function passOn(
  reply: OutboundReply,
  attempt: Attempt,
  headers: Readonly<Record<string, string>>,
  reading: BytesReading,
  { deps, orgId }: PerformContext,
): Promise<Performed> {
  const rest = reply.body[Symbol.asyncIterator]()
  const first = await rest.next()
  if (first.done) return failed(attempt, reply.status, 'ended the reply before its first byte')
  reading.push(first.value)
  const held = deps.heldReplies.open(orgId)
  return { answer: { kind: 'bytes', attempt, headers, first: first.value, rest, body: reply.body, reading, held }, replyHeaders: reply.headers }
}

function whole(
  attempt: Attempt,
  headers: WholeAnswer['headers'],
  bytes: Buffer,
  usage: TokenUsage | null,
  held: TokenUsage,
  { headers: replyHeaders }: OutboundReply,
): Performed {
  return { answer: { kind: 'whole', attempt, headers, usage: usage ?? held, estimated: usage === null, body: bytes }, replyHeaders }
}

const failed = (attempt: Attempt, status: number, what: string): Failed => ({
  kind: 'failed',
  attempt,
  failure: { kind: 'transient', status },
  message: `${attempt.route.provider.id} ${what}`,
})
