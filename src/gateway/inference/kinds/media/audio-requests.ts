/** Requests for speech to text and for text to speech. */

import type { Form } from '../../../../platform/endpoint.ts'
import { fail } from '../../../../platform/errors.ts'
import type { MeasuredLength } from '../../../../platform/media/audio-length.ts'
import type { SpeechCall, TranscriptionCall } from '../../../providers/audio/audio-style.ts'
import type { RouterFields } from '../../../wire/chat/router-fields.ts'
import { type FormField, oneField, parseFormFields } from '../../../wire/form-fields.ts'
import { accepting } from '../accepting.ts'
import { MediaRequest } from './media-request.ts'

/** The most characters (Unicode code points) of text that one call may have spoken. It is the usual limit of this API. */
export const speechInputMaxChars = 4096
/** The most characters of `instructions`, as the API documents it. */
const instructionsMaxChars = 4096
/** The most characters of all texts in the form of a transcription together, without its recordings. */
const transcriptionTextMaxChars = 32_000
/** The most recordings of known speakers in one transcription, as the API documents it. */
const speakerReferencesMax = 4
const transcriptFormats = ['json', 'text', 'srt', 'verbose_json', 'vtt', 'diarized_json'] as const
const speechFormats = ['mp3', 'opus', 'aac', 'flac', 'wav', 'pcm'] as const

/** A request to speak a text. Throws `bad_request`. */
export class SpeechRequest extends MediaRequest {
  readonly call: SpeechCall
  readonly stream: boolean
  readonly media: MediaRequest['media']
  readonly accepts = accepting('speech')

  constructor(model: string, fields: RouterFields, body: Readonly<Record<string, unknown>>) {
    super(model, fields, body)
    const { input } = body
    if (typeof input !== 'string' || input === '') throw bad('"input" must be the text to speak: a string that is not empty.')
    const characters = codePoints(input, speechInputMaxChars)
    if (characters > speechInputMaxChars) throw bad(`"input" has more than ${speechInputMaxChars} characters. Send a longer text in parts.`)
    const instructed = instructedChars(body['instructions'])
    checkVoice(body['voice'])
    const speed = body['speed'] ?? 1
    if (typeof speed !== 'number' || !(speed >= 0.25 && speed <= 4)) throw bad('"speed" must be a number from 0.25 to 4.')
    const responseFormat = oneOf(body['response_format'], 'response_format', speechFormats) ?? 'mp3'
    this.stream = oneOf(body['stream_format'], 'stream_format', ['audio', 'sse']) === 'sse'
    this.call = { body, input, responseFormat, stream: this.stream }
    // A model that follows instructions reads them like the text, and its provider bills them.
    this.media = { images: 0, audioSeconds: 0, characters: characters + instructed }
  }
}

/** A request to transcribe a recording. `recording` is the measured or estimated length of it. */
export class TranscriptionRequest extends MediaRequest {
  readonly call: TranscriptionCall
  readonly stream: boolean
  readonly recording: MeasuredLength
  readonly media: MediaRequest['media']
  readonly accepts = accepting('transcription')

  constructor({ model, fields, call }: ParsedTranscription, recording: MeasuredLength) {
    super(model, fields, Object.fromEntries(call.fields.map(({ name, value }) => [name, value])))
    this.call = call
    this.stream = call.stream
    this.recording = recording
    this.media = { images: 0, audioSeconds: recording.seconds, characters: 0 }
  }
}

export interface ParsedTranscription {
  readonly model: string
  readonly fields: RouterFields
  readonly call: TranscriptionCall
}

/** Checks the form of a transcription. Throws `bad_request` with the name of the field, and `bad_steps`. */
export function parseTranscription({ fields: given, files }: Form): ParsedTranscription {
  const { fields, others } = parseFormFields(given)
  const file = files.find(({ field }) => field === 'file')
  if (file === undefined || file.bytes.length === 0) throw bad('"file" must be an audio file, as a file part of the form.')
  if (files.length > 1) throw bad('Send one file, in the field "file".')
  const model = oneField(others, 'model')
  if (model === null) throw bad('"model" must be a non-empty string.')
  const responseFormat = oneOf(oneField(others, 'response_format'), 'response_format', transcriptFormats) ?? 'json'
  const stream = oneOf(oneField(others, 'stream'), 'stream', ['true', 'false', 'True', 'False', '1', '0'])
  checkTemperature(others)
  for (const name of ['language', 'prompt']) oneField(others, name)
  checkTexts(others)
  const call = { file, fields: others, responseFormat, stream: stream === 'true' || stream === 'True' || stream === '1' }
  return { model, fields, call }
}

/** Returns the parts of a form that distinguish it from other forms. */
export function formParts({ fields, files }: Form): readonly (Buffer | string)[] {
  return [...fields.flatMap(({ name, value }) => [name, value]), ...files.flatMap(file => [file.field, file.filename, file.bytes])]
}

/** Returns the number of characters of `instructions`. Throws `bad_request` for a value that is not a text of the allowed length. */
function instructedChars(instructions: unknown): number {
  if (instructions === undefined || instructions === null) return 0
  if (typeof instructions !== 'string') throw bad('"instructions" must be a string.')
  const characters = codePoints(instructions, instructionsMaxChars)
  if (characters > instructionsMaxChars) throw bad(`"instructions" has more than ${instructionsMaxChars} characters. Send shorter instructions.`)
  return characters
}

/** Texts beside a recording cost the caller nothing, so they are bounded. Throws `bad_request`. */
function checkTexts(fields: readonly FormField[]): void {
  const isReference = ({ name }: FormField): boolean => /^known_speaker_references(\[\d{0,3}\])?$/.test(name)
  if (fields.filter(isReference).length > speakerReferencesMax) throw bad(`"known_speaker_references" takes at most ${speakerReferencesMax} recordings.`)
  let characters = 0
  for (const field of fields) {
    if (!isReference(field)) characters += codePoints(field.value, transcriptionTextMaxChars - characters)
    if (characters > transcriptionTextMaxChars) throw bad(`The text fields have more than ${transcriptionTextMaxChars} characters. Send a shorter "prompt".`)
  }
}

function checkTemperature(fields: readonly FormField[]): void {
  const given = oneField(fields, 'temperature')
  if (given !== null && !(Number(given) >= 0 && Number(given) <= 2)) throw bad('"temperature" must be a number from 0 to 2.')
}

/** Throws `bad_request` unless the voice is a name or an object with the `id` of a custom voice. Without a voice the model's default applies. */
function checkVoice(voice: unknown): void {
  if (voice === undefined || voice === null || (typeof voice === 'string' && voice !== '')) return
  if (typeof voice === 'object' && 'id' in voice && typeof voice.id === 'string') return
  throw bad('"voice" must be the name of a voice.')
}

function oneOf<T extends string>(value: unknown, name: string, allowed: readonly T[]): T | null {
  if (value === undefined || value === null) return null
  const found = allowed.find(item => item === value)
  if (found === undefined) throw bad(`"${name}" must be one of ${allowed.map(item => `"${item}"`).join(', ')}.`)
  return found
}

/** Returns the number of characters of a text, or a number above `max` when there are more. It reads few units of a long text. Decision 0663 says why. */
function codePoints(text: string, max: number): number {
  // A character has at most two units.
  if (text.length > 2 * max) return max + 1
  let count = 0
  for (const _ of text) count++
  return count
}

const bad = (message: string): Error => fail('bad_request', { message })
