import type { Secret } from '../../../platform/security/secret.ts'
import type { FormField } from '../../wire/form-fields.ts'
import type { UpstreamRequest } from '../dialect.ts'
import type { Provider } from '../provider.ts'

/** The provider, model and credential of one attempt at an audio call. */
export interface AudioTarget {
  readonly provider: Provider
  readonly upstreamModel: string
  readonly credential: Secret | null
  /** True: `speech` may return `unwritten` in place of a body, because the body is heavy. */
  readonly writesLater?: boolean
}

/** A recording to be transcribed. */
export interface TranscriptionCall {
  readonly file: { readonly filename: string; readonly contentType: string; readonly bytes: Buffer }
  /** Text fields in the order of the request, including `model` and without router fields. */
  readonly fields: readonly FormField[]
  readonly responseFormat: string
  readonly stream: boolean
}

/** A text to be turned into speech. */
export interface SpeechCall {
  /** The body in OpenAI's format, without router fields. `voice` is set if the model has a default voice. The body is never changed. */
  readonly body: Readonly<Record<string, unknown>>
  readonly input: string
  readonly responseFormat: string
  readonly stream: boolean
}

export interface SpokenAudio {
  readonly bytes: Buffer
  readonly contentType: string
}

/** How requests for audio are written for a provider, and how its replies are read. The functions are pure. */
export interface AudioStyle {
  /** Returns the request. `boundary` is a text that cannot be guessed. Throws `bad_request` for features that the provider does not have. */
  transcription(call: TranscriptionCall, target: AudioTarget, boundary: string): UpstreamRequest
  /** Converts a whole JSON reply to OpenAI's format. Returns the same object if the reply already has that format. */
  transcript(reply: Readonly<Record<string, unknown>>): Record<string, unknown>
  /** Returns the request. Throws `bad_request` for features that the provider does not have. */
  speech(call: SpeechCall, target: AudioTarget): UpstreamRequest
  /**
   * Reads the audio in a whole JSON reply. Returns null if the reply contains none. The field itself is null for a style whose reply is the audio as
   * bytes.
   */
  readonly spoken: ((reply: Readonly<Record<string, unknown>>, call: SpeechCall) => SpokenAudio | null) | null
}
