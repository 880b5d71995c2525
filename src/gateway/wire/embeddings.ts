import { fail } from '../../platform/errors.ts'
import { modelOf } from './chat/chat.ts'
import { PromptSize } from './prompt-size.ts'

/** The facts about an embeddings request that the pipeline needs. */
export interface ParsedEmbeddings {
  readonly model: string
  /** The number of texts to embed. */
  readonly inputs: number
  /** ceil(UTF-8 bytes of all inputs / 3). Long settings count, too. */
  readonly promptTokensEstimate: number
  /** The part of the estimate that a provider may not read. */
  readonly promptUnreadTokens: number
  /** The part of the estimate that only tokenizers with a token for each digit count. */
  readonly promptDigitTokens: number
}

/** Maximum number of texts in one call. It is the usual limit among providers. */
export const inputsMax = 2048
const readFields: ReadonlySet<string> = new Set(['model', 'input'])

/**
 * Checks an OpenAI embeddings request: `input` must be a string or a non-empty array of strings. `dimensions`, `encoding_format` and other fields are
 * passed on unchanged. `digits` is the number of digits that long numbers have lost in `body`, from `unseenDigitsOf`. Throws `bad_request` that names the
 * field.
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
    return sized(model, 1, size)
  }
  if (!Array.isArray(input) || input.length === 0 || input.length > inputsMax)
    throw fail('bad_request', { message: `"input" must be a string or an array of 1 to ${inputsMax} strings.` })
  for (let index = 0; index < input.length; index++) {
    const text: unknown = input[index]
    if (typeof text !== 'string') throw fail('bad_request', { message: `"input[${index}]" must be a string.${isTokens(text) ? tokensHint : ''}` })
    size.text(text)
  }
  return sized(model, input.length, size)
}

const sized = (model: string, inputs: number, { estimate, unreadTokens, digitTokens }: PromptSize): ParsedEmbeddings => ({
  model,
  inputs,
  promptTokensEstimate: estimate,
  promptUnreadTokens: unreadTokens,
  promptDigitTokens: digitTokens,
})

/**
 * True for token numbers, which are refused. Some clients split texts into tokens of one vendor's models, but to another model the same numbers mean
 * another text.
 */
const isTokens = (item: unknown): boolean => typeof item === 'number' || Array.isArray(item)
const tokensHint = ' Token numbers are not taken here, because each model counts its own: send the text itself.'
