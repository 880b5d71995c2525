import { fail } from '../../platform/errors.ts'
import { modelOf } from './chat/chat.ts'
import { PromptSize } from './prompt-size.ts'

/** What the pipeline needs to know of an embeddings request. */
export interface ParsedEmbeddings {
  readonly model: string
  /** How many texts are embedded. */
  readonly inputs: number
  /** ceil(UTF-8 bytes of all inputs / 3); settings count, too, when they are long. */
  readonly promptTokensEstimate: number
  /** Part of the estimate that a provider may leave unread. */
  readonly promptUnreadTokens: number
}

/** Most texts in one call; the usual bound of the field. */
export const inputsMax = 2048
const readFields: ReadonlySet<string> = new Set(['model', 'input'])

/**
 * Checks an OpenAI embeddings request: `input` is a string or a non-empty array of strings. `dimensions`, `encoding_format` and
 * other fields go on as they are. `digits` are those that are not in the value, by `unseenDigitsOf`. Throws `bad_request` that names the field.
 */
export function parseEmbeddings(body: unknown, digits = 0): ParsedEmbeddings {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw fail('bad_request', { message: 'The body must be a JSON object.' })
  const request = body as Readonly<Record<string, unknown>>
  const model = modelOf(request)
  const input = request['input']
  const size = new PromptSize(0)
  size.settings(request, readFields)
  size.digits(digits)
  if (typeof input === 'string') {
    size.text(input)
    return { model, inputs: 1, promptTokensEstimate: size.estimate, promptUnreadTokens: size.unreadTokens }
  }
  if (!Array.isArray(input) || input.length === 0 || input.length > inputsMax)
    throw fail('bad_request', { message: `"input" must be a string or an array of 1 to ${inputsMax} strings.` })
  for (let index = 0; index < input.length; index++) {
    const text: unknown = input[index]
    if (typeof text !== 'string') throw fail('bad_request', { message: `"input[${index}]" must be a string.${isTokens(text) ? tokensHint : ''}` })
    size.text(text)
  }
  return { model, inputs: input.length, promptTokensEstimate: size.estimate, promptUnreadTokens: size.unreadTokens }
}

/** Some clients cut texts into the tokens of one maker's models, which mean something else to every other model. */
const isTokens = (item: unknown): boolean => typeof item === 'number' || Array.isArray(item)
const tokensHint = ' Token numbers are not taken here, because each model counts its own: send the text itself.'
