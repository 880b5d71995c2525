/** The most tokens that a provider may count for a prompt. Strict budgets and caps of one call use it. It also says whether the estimate is a guess. */
import { fail } from '../../platform/errors.ts'
import type { Attempt } from '../routing/plan.ts'
import type { TokenUsage } from '../wire/usage.ts'
import type { ParsedRequest } from './kinds/request.ts'

/** The context window of a model without a known window, in tokens. */
const unknownWindowTokens = 1_000_000

/**
 * The most tokens that a provider counts for one picture. Anthropic counts one token for 28 x 28 pixels, at most 4,784 for the models that take
 * large pictures. Gemini counts 258 tokens for each tile of a picture, at most 2,240 in the highest resolution of newer models, and more tiles
 * for a long and narrow picture.
 */
const imageTokensMost: Readonly<Record<string, number>> = { anthropic: 5000, gemini: 8192 }
/** Open models that cut pictures into patches without making them smaller: 12.8 million pixels in patches of 28 x 28. */
const otherImageTokensMost = 16_384
/** OpenAI's smallest model of that generation counts 2,833 tokens and 5,667 for each of at most eight tiles, together 48,169. */
const miniImageTokensMost = 48_169
/** Sound has at most 32 tokens a second. The thinnest speech that people can understand is 4 kbit/s, which is 500 bytes a second. */
const audioBytesPerTokenLeast = 15

type Weighed = Pick<ParsedRequest, 'promptTokens' | 'promptMedia'>
type Served = Pick<Attempt, 'route' | 'model'>

/** Returns the context window of the route's model in tokens. The provider refuses a longer prompt. */
export const windowTokensOf = ({ route, model }: Served): number => route.contextLength ?? model.contextLength ?? unknownWindowTokens

/**
 * Returns the estimate when the prompt contains text only. With media it returns the most that their bytes and the provider's rules allow. The
 * result is at most the window, unless the estimate itself is larger.
 */
export function promptTokensMost({ promptTokens, promptMedia }: Weighed, attempt: Served): number {
  if (promptMedia === undefined) return promptTokens
  const windowTokens = Math.max(promptTokens, windowTokensOf(attempt))
  const { images, linkedImages, audioBytes, isOpen, tokens } = promptMedia
  // A provider of the `gemini` dialect fetches the content of a linked address, whose size is unknown here.
  if (isOpen || (linkedImages > 0 && attempt.route.dialect === 'gemini')) return windowTokens
  const media = images * imageMostOf(attempt) + Math.ceil(audioBytes / audioBytesPerTokenLeast)
  return Math.max(promptTokens, Math.min(windowTokens, promptTokens - tokens + media))
}

function imageMostOf({ route }: Served): number {
  if (/gpt-4o-mini/.test(route.upstreamModel)) return miniImageTokensMost
  // Claude models that another provider serves.
  return imageTokensMost[route.dialect] ?? (/claude/.test(route.upstreamModel) ? (imageTokensMost['anthropic'] ?? 0) : otherImageTokensMost)
}

/** Returns true when only the provider knows the token count of the prompt, which may be far above the estimate. */
export const isPromptGuessed = (request: Weighed, attempt: Served): boolean => promptTokensMost(request, attempt) > request.promptTokens

/** Returns the tokens of a prompt that are held as sound: all tokens that are not text, when the prompt contains sound or media that may contain sound. */
export function audioTokensHeld({ promptTokens, promptMedia }: Weighed, heldTokens: number): number {
  if (promptMedia === undefined || !(promptMedia.hasAudio || promptMedia.isOpen)) return 0
  return Math.max(0, heldTokens - (promptTokens - promptMedia.tokens))
}

/** Returns the usage to charge. When the provider does not report how much of a prompt was sound, all tokens that are not text count as sound. */
export function withSound(tokens: TokenUsage, request: Weighed): TokenUsage {
  if (tokens.audioTokens !== undefined || request.promptMedia?.hasAudio !== true) return tokens
  return { ...tokens, audioTokens: audioTokensHeld(request, tokens.promptTokens) }
}

/**
 * Refuses sound on a platform key when the route has no price for sound, because sound is dearer than text nearly everywhere. Two kinds of
 * routes are exempt. Own servers and routes that forward all fields take sound, because only text is priced there. The `anthropic` dialect
 * cannot carry sound and drops it by name. Throws `bad_request`.
 */
export function refuseUnpricedSound({ promptMedia }: Weighed, { route, byok }: Attempt): void {
  if (promptMedia?.hasAudio !== true || byok || route.dialect === 'anthropic' || route.price.audioInputUinrPerMtok !== undefined) return
  if (route.provider.forwards === 'all' || route.provider.userGiven === true) return
  throw fail('bad_request', {
    message: `Sound has no price of its own at ${route.provider.id}, so it is for your own provider key only. Send or save one, or have the recording written down at /v1/audio/transcriptions first.`,
  })
}
