import { multipartBody } from '../../wire/multipart-body.ts'
import { callHeaders } from '../call-headers.ts'
import { jsonBody } from '../dialects/json-values.ts'
import type { AudioStyle } from './audio-style.ts'

/** The paths and fields of OpenAI's audio API. Most providers share them. The request is unchanged except for the name of the model. */
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
  speech({ body }, target) {
    const { provider, upstreamModel, credential } = target
    return {
      method: 'POST',
      url: `${provider.baseUrl}/audio/speech`,
      headers: { ...callHeaders(provider, credential), 'content-type': 'application/json', accept: '*/*' },
      // The body is always written again. Otherwise a provider could read another occurrence of a repeated name than the one that the gateway has
      // priced.
      ...jsonBody({ ...body, model: upstreamModel }, target),
      dropped: [],
    }
  },
  spoken: null,
}
