/** The most tokens that a provider may count a prompt for: for strict budgets and caps of one call, and to know whether the estimate is a guess. */
import { fail } from '../../platform/errors.ts'
import type { Attempt } from '../routing/plan.ts'
import type { TokenUsage } from '../wire/usage.ts'
import type { ParsedRequest } from './kinds/request.ts'

/** Window of a model of which nobody has written one down. */
const unknownWindowTokens = 1_000_000

/**
 * Tokens that one picture is counted for at most. Anthropic: 28 x 28 pixels a token, at most 4,784 for the models with large pictures. Gemini: 258 for
 * each tile of a picture, at most 2,240 in the highest resolution of newer models, and more tiles of one that is long and narrow.
 */
const imageTokensMost: Readonly<Record<string, number>> = { anthropic: 5000, gemini: 8192 }
/** Open models that cut pictures into patches without making them smaller: 12.8 million pixels in patches of 28 x 28. */
const otherImageTokensMost = 16_384
/** OpenAI's smallest model of that generation counts 2,833 tokens and 5,667 for each of at most eight tiles. */
const miniImageTokensMost = 48_169
/** Sound has at most 32 tokens a second; speech at 4 kbit/s, the thinnest that anybody can understand, has 500 bytes a second. */
const audioBytesPerTokenLeast = 15

type Weighed = Pick<ParsedRequest, 'promptTokens' | 'promptMedia'>
type Served = Pick<Attempt, 'route' | 'model'>

/** Tokens that the model takes at all: a longer prompt is refused by its provider. */
export const windowTokensOf = ({ route, model }: Served): number => route.contextLength ?? model.contextLength ?? unknownWindowTokens

/** The estimate where the prompt is text alone; with media the most that their bytes and the provider's rules allow, never above the window. */
export function promptTokensMost({ promptTokens, promptMedia }: Weighed, attempt: Served): number {
  if (promptMedia === undefined) return promptTokens
  const windowTokens = Math.max(promptTokens, windowTokensOf(attempt))
  const { images, linkedImages, audioBytes, isOpen, tokens } = promptMedia
  // This dialect has its provider fetch whatever is behind an address.
  if (isOpen || (linkedImages > 0 && attempt.route.dialect === 'gemini')) return windowTokens
  const media = images * imageMostOf(attempt) + Math.ceil(audioBytes / audioBytesPerTokenLeast)
  return Math.max(promptTokens, Math.min(windowTokens, promptTokens - tokens + media))
}

function imageMostOf({ route }: Served): number {
  if (/gpt-4o-mini/.test(route.upstreamModel)) return miniImageTokensMost
  // Models of that maker by way of another, too.
  return imageTokensMost[route.dialect] ?? (/claude/.test(route.upstreamModel) ? (imageTokensMost['anthropic'] ?? 0) : otherImageTokensMost)
}

/** True: only the provider knows what the prompt comes to, which may be far above the estimate. */
export const isPromptGuessed = (request: Weighed, attempt: Served): boolean => promptTokensMost(request, attempt) > request.promptTokens

/** Tokens of a prompt that are held for as sound: all that are not text, where there is sound or what may have some in it. */
export function audioTokensHeld({ promptTokens, promptMedia }: Weighed, heldTokens: number): number {
  if (promptMedia === undefined || !(promptMedia.hasAudio || promptMedia.isOpen)) return 0
  return Math.max(0, heldTokens - (promptTokens - promptMedia.tokens))
}

/** What is charged: where the provider does not tell how much of a prompt was sound, all that is not text. */
export function withSound(tokens: TokenUsage, request: Weighed): TokenUsage {
  if (tokens.audioTokens !== undefined || request.promptMedia?.hasAudio !== true) return tokens
  return { ...tokens, audioTokens: audioTokensHeld(request, tokens.promptTokens) }
}

/**
 * Sound is dearer than text nearly everywhere, so a route without a price for it takes none on the platform's key. Servers of the operator's own,
 * where nothing beside the text costs more, take it; what cannot carry it drops it by name. Throws `bad_request`.
 */
export function refuseUnpricedSound({ promptMedia }: Weighed, { route, byok }: Attempt): void {
  if (promptMedia?.hasAudio !== true || byok || route.dialect === 'anthropic' || route.price.audioInputUinrPerMtok !== undefined) return
  if (route.provider.forwards === 'all' || route.provider.userGiven === true) return
  throw fail('bad_request', {
    message: `Sound has no price of its own at ${route.provider.id}, so it is for your own provider key only. Send or save one, or have the recording written down at /v1/audio/transcriptions first.`,
  })
}
