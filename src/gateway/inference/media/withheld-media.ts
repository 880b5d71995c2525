/** Removes fields of audio and image requests before they go to a provider on the operator's key. On a key or server of the caller, it removes none. */
import { fail } from '../../../platform/errors.ts'
import type { SpeechCall, TranscriptionCall } from '../../providers/audio/audio-style.ts'
import { heldBack, imageFields, speechFields, transcriptionFields } from '../../providers/format-fields.ts'
import type { Attempt } from '../../routing/plan.ts'
import type { ImageParams } from '../../wire/images.ts'
import { without } from '../attempt/withheld.ts'

const none: readonly string[] = Object.freeze([])

/** Returns a speech call with the fields that may be sent. Throws `bad_request` for a voice that is stored in the account of the key's owner. */
export function withheldSpeech(call: SpeechCall, { byok, route: { provider } }: Attempt): { readonly call: SpeechCall; readonly dropped: readonly string[] } {
  if (byok) return { call, dropped: none }
  const names = heldBack(call.body, speechFields, provider)
  if (names.includes('voice'))
    throw fail('bad_request', {
      message: '"voice" names one that is stored at the provider, so it is for your own provider key only. Name one of its common voices.',
    })
  if (names.length === 0) return { call, dropped: none }
  return { call: { ...call, body: without(call.body, names) }, dropped: names }
}

/** Returns a transcription call with the fields that may be sent. */
export function withheldTranscription(
  call: TranscriptionCall,
  { byok, route: { provider } }: Attempt,
): { readonly call: TranscriptionCall; readonly dropped: readonly string[] } {
  const names = byok ? none : heldBack(Object.fromEntries(call.fields.map(({ name, value }) => [name, value])), transcriptionFields, provider)
  return names.length === 0 ? { call, dropped: none } : { call: { ...call, fields: call.fields.filter(({ name }) => !names.includes(name)) }, dropped: names }
}

/** Returns image parameters with the fields that may be sent. */
export function withheldParams(
  params: ImageParams,
  { byok, route: { provider } }: Attempt,
): { readonly params: ImageParams; readonly dropped: readonly string[] } {
  const names = byok ? none : heldBack(params.others, imageFields, provider)
  if (names.length === 0) return { params, dropped: none }
  return { params: { ...params, others: without(params.others, names) }, dropped: names }
}
