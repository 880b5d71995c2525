/** Attempts of audio: a recording to be written down, a text to be spoken. */
import type { OutboundReply } from '../../platform/upstream-body.ts'
import type { SpeechCall, TranscriptionCall } from '../providers/audio/audio-style.ts'
import { audioStyleOf } from '../providers/audio-styles.ts'
import type { UpstreamRequest } from '../providers/dialect.ts'
import { classifyFailure } from '../providers/failure.ts'
import type { Attempt } from '../routing/plan.ts'
import { brHeader, headerValue } from '../wire/response-headers.ts'
import { noUsage, type TokenUsage } from '../wire/usage.ts'
import type { BytesReading, Failed, Performed, WholeAnswer } from './answer.ts'
import { SpeechReading, secondsOf, TranscriptReading } from './audio-reading.ts'
import { decodedReply } from './decoded-reply.ts'
import { SpeechRequest, TranscriptionRequest } from './kinds/audio-requests.ts'
import type { Performer } from './kinds/kind.ts'
import { readRefusal } from './refusals.ts'
import { send } from './send.ts'
import { written } from './written.ts'

/** Largest transcript, and largest reply with audio inside JSON. */
const transcriptMaxBytes = 16 * 1024 * 1024
const spokenMaxBytes = 64 * 1024 * 1024
/** The same of a server that somebody has registered. */
const ownReplyMaxBytes = 8 * 1024 * 1024

const limitOf = ({ route }: Attempt, bytes: number): number => (route.provider.userGiven === true ? Math.min(bytes, ownReplyMaxBytes) : bytes)

/** Makes one attempt of a transcription. */
export const performTranscription: Performer = async (attempt, context) => {
  const { request, deps } = context
  if (!(request instanceof TranscriptionRequest)) throw new TypeError('not a transcription')
  const style = audioStyleOf(attempt.route.provider)
  const boundary = `brigade-${deps.ids.uuidv7(deps.clock.nowMs())}`
  const outgoing = written(() => style.transcription(request.call, targetOf(attempt), boundary))
  const reply = decodedReply(await send(attempt, outgoing, context.signal, deps))
  if (!isSuccess(reply)) return readRefusal(reply, attempt, { failure: classifyFailure }, request)
  const type = typeOf(reply)
  const headers = droppedHeaders(outgoing)
  if (type.startsWith('text/event-stream')) return passOn(reply, attempt, { ...headers, 'content-type': type }, new TranscriptReading(withMedia(request.media)))
  const bytes = await reply.body.buffer(limitOf(attempt, transcriptMaxBytes))
  if (!isJson(request.call)) return textAnswer(bytes, type, reply, attempt, headers, request)
  const value = objectOf(bytes)
  const made = value === null ? null : style.transcript(value)
  if (value === null || made === null || !('text' in made || 'segments' in made))
    return failed(attempt, reply.status, `answered ${reply.status} with no transcript`)
  const seconds = secondsOf(value)
  const body = made === value ? bytes : Buffer.from(JSON.stringify(made))
  const usage = seconds === null ? null : withMedia({ images: 0, audioSeconds: seconds, characters: 0 })
  return whole(attempt, { ...headers, 'content-type': made === value ? type : 'application/json; charset=utf-8' }, body, usage, withMedia(request.media), reply)
}

const isJson = ({ responseFormat }: TranscriptionCall): boolean => responseFormat.endsWith('json')

/** Types of pages and programs: a browser must never be given one under the address of the gateway. */
const activeType = /html|xml|svg|script/i

/** A transcript as text or subtitles, with the type that the provider gives it. */
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

/** Makes one attempt of a call that has a text spoken. */
export const performSpeech: Performer = async (attempt, context) => {
  const { request, deps } = context
  if (!(request instanceof SpeechRequest)) throw new TypeError('not a text to speak')
  const style = audioStyleOf(attempt.route.provider)
  const call = withVoice(request.call, attempt)
  const outgoing = written(() => style.speech(call, targetOf(attempt)))
  const reply = decodedReply(await send(attempt, outgoing, context.signal, deps))
  if (!isSuccess(reply)) return readRefusal(reply, attempt, { failure: classifyFailure }, request)
  const headers = droppedHeaders(outgoing)
  const usage = withMedia(request.media)
  if (style.spoken !== null) {
    const value = objectOf(await reply.body.buffer(limitOf(attempt, spokenMaxBytes)))
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
  )
}

/** The types that are said for a provider that says none. */
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

/** The voice of the model where the caller names none. */
function withVoice(call: SpeechCall, { model }: Attempt): SpeechCall {
  const { body } = call
  if ((body['voice'] ?? null) !== null || model.defaultVoice === undefined) return call
  return { ...call, body: { ...body, voice: model.defaultVoice } }
}

const targetOf = ({ route, credential }: Attempt) => ({ provider: route.provider, upstreamModel: route.upstreamModel, credential })
const isSuccess = ({ status }: OutboundReply): boolean => status >= 200 && status < 300
const typeOf = ({ headers }: OutboundReply): string => String(headers['content-type'] ?? '')
const withMedia = (media: NonNullable<TokenUsage['media']>): TokenUsage => ({ ...noUsage, media })

function droppedHeaders({ dropped }: UpstreamRequest): Readonly<Record<string, string>> {
  return dropped.length === 0 ? {} : { [brHeader.droppedParams]: headerValue(dropped.join(',')) }
}

/** The reply counts as begun when its first bytes are here: until then another route can still take over. */
async function passOn(reply: OutboundReply, attempt: Attempt, headers: Readonly<Record<string, string>>, reading: BytesReading): Promise<Performed> {
  const rest = reply.body[Symbol.asyncIterator]()
  const first = await rest.next()
  if (first.done) return failed(attempt, reply.status, 'ended the reply before its first byte')
  reading.push(first.value)
  return { answer: { kind: 'bytes', attempt, headers, first: first.value, rest, body: reply.body, reading }, replyHeaders: reply.headers }
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

function objectOf(bytes: Buffer): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null
  } catch {
    return null
  }
}

const failed = (attempt: Attempt, status: number, what: string): Failed => ({
  kind: 'failed',
  attempt,
  failure: { kind: 'transient', status },
  message: `${attempt.route.provider.id} ${what}`,
})
