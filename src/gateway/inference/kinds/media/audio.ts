/** Speech to text and text to speech. */
import { modelOf } from '../../../wire/chat/chat.ts'
import { chatFormat } from '../../../wire/chat/chat-format.ts'
import { parseRouterFields } from '../../../wire/chat/router-fields.ts'
import { performSpeech, performTranscription } from '../../media/perform-audio.ts'
import type { Kind } from '../kind.ts'
import { parseObject } from '../parse-object.ts'
import { SpeechRequest, type TranscriptionRequest } from './audio-requests.ts'

const common = { hasOutput: false, format: chatFormat, complete: () => null } as const

/** Text to speech, charged by the character. */
export const speechKind: Kind = {
  ...common,
  usageKind: 'speech',
  modelKind: 'speech',
  perform: performSpeech,
  parse({ bytes }) {
    const { fields, stripped } = parseRouterFields(parseObject(bytes))
    return new SpeechRequest(modelOf(stripped), fields, stripped)
  },
}

/** Speech to text, charged by the second. The length of the recording is measured before; see `parseTranscription`. */
export function transcriptionKind(request: TranscriptionRequest): Kind {
  return { ...common, usageKind: 'transcription', modelKind: 'transcription', perform: performTranscription, parse: () => request }
}
