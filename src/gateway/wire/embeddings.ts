import { fail } from '../../platform/errors.ts'
import { modelOf } from './chat.ts'
import { estimateTokens } from './usage.ts'

/** What the pipeline needs to know of an embeddings request. */
export interface ParsedEmbeddings {
  readonly model: string
  /** How many texts are embedded. */
  readonly inputs: number
  /** ceil(UTF-8 bytes of all inputs / 3). */
  readonly promptTokensEstimate: number
}

/** Most texts in one call; the usual bound of the field. */
export const inputsMax = 2048

/**
 * Checks an OpenAI embeddings request: `input` is a string or a non-empty array of strings. `dimensions`, `encoding_format` and
 * other fields go on as they are. Throws `bad_request` that names the field.
 */
export function parseEmbeddings(body: unknown): ParsedEmbeddings {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw fail('bad_request', { message: 'The body must be a JSON object.' })
  const request = body as Readonly<Record<string, unknown>>
  const model = modelOf(request)
  const input = request['input']
  if (typeof input === 'string') return { model, inputs: 1, promptTokensEstimate: estimateTokens(Buffer.byteLength(input)) }
  if (!Array.isArray(input) || input.length === 0 || input.length > inputsMax)
    throw fail('bad_request', { message: `"input" must be a string or an array of 1 to ${inputsMax} strings.` })
  let bytes = 0
  for (let index = 0; index < input.length; index++) {
    const text: unknown = input[index]
    if (typeof text !== 'string') throw fail('bad_request', { message: `"input[${index}]" must be a string.${isTokens(text) ? tokensHint : ''}` })
    bytes += Buffer.byteLength(text)
  }
  return { model, inputs: input.length, promptTokensEstimate: estimateTokens(bytes) }
}

/** Some clients cut texts into the tokens of one maker's models, which mean something else to every other model. */
const isTokens = (item: unknown): boolean => typeof item === 'number' || Array.isArray(item)
const tokensHint = ' Token numbers are not taken here, because each model counts its own: send the text itself.'
