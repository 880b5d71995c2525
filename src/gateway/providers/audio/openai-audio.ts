import { multipartBody } from '../../wire/multipart-body.ts'
import { callHeaders } from '../call-headers.ts'
import type { AudioStyle } from './audio-style.ts'

/** The paths and fields of OpenAI's audio API, which most providers share. Everything is sent on unchanged, except the model's name. */
export const openAiAudio: AudioStyle = {
  transcription({ file, fields, stream }, { provider, upstreamModel, credential }, boundary) {
    const named = fields.map(field => (field.name === 'model' ? { ...field, value: upstreamModel } : field))
    const { contentType, body } = multipartBody([...named, { name: 'file', ...file }], boundary)
    return {
      method: 'POST',
      url: `${provider.baseUrl}/audio/transcriptions`,
      headers: { ...callHeaders(provider, credential), 'content-type': contentType, accept: stream ? 'text/event-stream' : '*/*' },
      body,
      dropped: [],
    }
  },
  transcript: (reply): Record<string, unknown> => reply,
  speech({ body }, { provider, upstreamModel, credential }) {
    return {
      method: 'POST',
      url: `${provider.baseUrl}/audio/speech`,
      headers: { ...callHeaders(provider, credential), 'content-type': 'application/json', accept: '*/*' },
      // The body is always written again. A provider could otherwise read a repeated key differently from the gateway that priced it.
      body: JSON.stringify({ ...body, model: upstreamModel }),
      dropped: [],
    }
  },
  spoken: null,
}
