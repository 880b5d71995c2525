import type { Secret } from '../../../platform/security/secret.ts'
import type { FormField } from '../../wire/form-fields.ts'
import type { UpstreamRequest } from '../dialect.ts'
import type { Provider } from '../provider.ts'

/** Whom one attempt at audio dials. */
export interface AudioTarget {
  readonly provider: Provider
  readonly upstreamModel: string
  readonly credential: Secret | null
}

/** A recording to be written down. */
export interface TranscriptionCall {
  readonly file: { readonly filename: string; readonly contentType: string; readonly bytes: Buffer }
  /** Text fields in the order in which they came, `model` among them, without router fields. */
  readonly fields: readonly FormField[]
  readonly responseFormat: string
  readonly stream: boolean
}

/** A text to be spoken. */
export interface SpeechCall {
  /** The body as OpenAI has it, without router fields; `voice` is set where the model has a default. Never mutated. */
  readonly body: Readonly<Record<string, unknown>>
  readonly input: string
  readonly responseFormat: string
  readonly stream: boolean
}

export interface SpokenAudio {
  readonly bytes: Buffer
  readonly contentType: string
}

/** How a provider is asked for audio. Pure. */
export interface AudioStyle {
  /** `boundary` is a text that nobody can guess. Throws `bad_request` for what the provider cannot do. */
  transcription(call: TranscriptionCall, target: AudioTarget, boundary: string): UpstreamRequest
  /** A whole JSON reply as OpenAI has it: the very same object when it is in that shape. */
  transcript(reply: Readonly<Record<string, unknown>>): Record<string, unknown>
  /** Throws `bad_request` for what the provider cannot do. */
  speech(call: SpeechCall, target: AudioTarget): UpstreamRequest
  /** Reads the audio out of a whole JSON reply, null where there is none in it. Null: the reply's bytes are the audio. */
  readonly spoken: ((reply: Readonly<Record<string, unknown>>, call: SpeechCall) => SpokenAudio | null) | null
}
