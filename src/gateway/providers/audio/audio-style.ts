import type { Secret } from '../../../platform/security/secret.ts'
import type { FormField } from '../../wire/form-fields.ts'
import type { UpstreamRequest } from '../dialect.ts'
import type { Provider } from '../provider.ts'

/** The provider, model and credential that one attempt at audio uses. */
export interface AudioTarget {
  readonly provider: Provider
  readonly upstreamModel: string
  readonly credential: Secret | null
}

/** A recording to be transcribed. */
export interface TranscriptionCall {
  readonly file: { readonly filename: string; readonly contentType: string; readonly bytes: Buffer }
  /** Text fields in the order in which they came, including `model`, without router fields. */
  readonly fields: readonly FormField[]
  readonly responseFormat: string
  readonly stream: boolean
}

/** A text to be turned into speech. */
export interface SpeechCall {
  /** The body in OpenAI's format, without router fields. `voice` is set if the model has a default. Never mutated. */
  readonly body: Readonly<Record<string, unknown>>
  readonly input: string
  readonly responseFormat: string
  readonly stream: boolean
}

export interface SpokenAudio {
  readonly bytes: Buffer
  readonly contentType: string
}

/** The way in which a provider is asked for audio. It is pure. */
export interface AudioStyle {
  /** Returns the request. `boundary` is a text that cannot be guessed. Throws `bad_request` for features that the provider does not have. */
  transcription(call: TranscriptionCall, target: AudioTarget, boundary: string): UpstreamRequest
  /** Converts a whole JSON reply to OpenAI's format. Returns the same object if it has that format already. */
  transcript(reply: Readonly<Record<string, unknown>>): Record<string, unknown>
  /** Returns the request. Throws `bad_request` for features that the provider does not have. */
  speech(call: SpeechCall, target: AudioTarget): UpstreamRequest
  /** Reads the audio out of a whole JSON reply; it returns null if the reply has none. A style with null here replies with the audio itself as bytes. */
  readonly spoken: ((reply: Readonly<Record<string, unknown>>, call: SpeechCall) => SpokenAudio | null) | null
}
