/** The addresses under which clouds serve models, below the `baseUrl` of the provider. */
import { fail } from '../../../platform/errors.ts'

/**
 * Returns a model id as one part of a path on Bedrock. Every character with a meaning in a path is encoded, such as the `:` and `/` of an ARN. Throws
 * `bad_request` for dots alone, which would name another path.
 */
function bedrockModel(upstreamModel: string): string {
  if (/^\.{1,2}$/.test(upstreamModel)) throw fail('bad_request', { message: `"${upstreamModel}" is no id of a model.` })
  return encodeURIComponent(upstreamModel).replace(/[!'()*]/g, char => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
}

/** Returns a model id as one part of a path on Vertex. Its version follows an `@`, which stays as it is. */
const vertexModel = (upstreamModel: string): string => encodeURIComponent(upstreamModel).replaceAll('%40', '@')

/** Returns the address of a Claude model on Bedrock. */
export const bedrockUrl = (baseUrl: string, upstreamModel: string, stream: boolean): string =>
  `${baseUrl}/model/${bedrockModel(upstreamModel)}/${stream ? 'invoke-with-response-stream' : 'invoke'}`

/** Returns the address of a Claude model on Vertex. */
export const vertexClaudeUrl = (baseUrl: string, upstreamModel: string, stream: boolean): string =>
  `${baseUrl}/publishers/anthropic/models/${vertexModel(upstreamModel)}:${stream ? 'streamRawPredict' : 'rawPredict'}`

/** Returns the address that counts the tokens of a prompt for a Claude model on Vertex. The body names the model. */
export const vertexClaudeCountUrl = (baseUrl: string): string => `${baseUrl}/publishers/anthropic/models/count-tokens:rawPredict`

/** Returns the address of a Gemini model on Vertex. */
export const vertexGeminiUrl = (baseUrl: string, upstreamModel: string, stream: boolean): string =>
  `${baseUrl}/publishers/google/models/${vertexModel(upstreamModel)}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`
