/**
 * Decides how far a provider's reported usage is believed. Plausible figures are believed as they are. Other figures are limited by the request
 * and by the received reply. Decision 0383 gives the reasons.
 */
import type { Attempt } from '../../routing/plan.ts'
import { bytesPerToken, type TokenUsage } from '../../wire/usage.ts'
import type { ParsedRequest } from '../kinds/request.ts'
import { windowTokensOf } from '../prompt-most.ts'
import { cappedAt, outputCeiling, tokensOfChars } from './estimate.ts'
import { limitExcludesThinking, thinksUnseen } from './thinks-unseen.ts'

/** A prompt has at most one token for each byte, and one estimated token covers three bytes. The slack is for text that the provider adds. */
const promptFactor = 4
const promptSlackTokens = 32_768
/**
 * The most tokens that are believed for one byte of text. No tokenizer makes more than one token for a byte; the rest is for tokens that a
 * provider counts beside the text.
 */
const tokensPerCharMax = 4
/** The tokens that a model without hidden thinking may make beside its shown text: tool calls, marks and a little thinking. */
const unshownSlackTokens = 8192
/** The longest tokens are runs of spaces. A figure with more characters for each token cannot belong to its text. */
export const charsPerTokenMax = 128
const tellingSlackChars = 64

/** The plausible range of the usage of a call. */
export interface UsageBounds {
  /** The estimate of the prompt. */
  readonly promptTokens: number
  readonly promptMinTokens: number
  readonly promptMaxTokens: number
  /** The limit of the request, or the most that the model can write. */
  readonly outputMaxTokens: number
  /** True when the request has a limit of output tokens. */
  readonly isAsked: boolean
  readonly thinksUnseen: boolean
  /** Output that the caller has predicted. It is charged even where the model does not write it. */
  readonly predictedTokens: number
}

/** Returns the bounds of a call on one attempt. */
export function usageBoundsOf(request: ParsedRequest, attempt: Attempt, hasOutput: boolean): UsageBounds {
  const { promptTokens, promptMedia, promptUnreadTokens, maxTokens, answers } = request
  const { model, byok } = attempt
  const windowTokens = windowTokensOf(attempt)
  // Each model counts pictures, files and sound in its own way, and providers add text of their own. So only a prompt larger than the window is doubted.
  const promptMaxTokens = Math.max(promptTokens * promptFactor + promptSlackTokens, windowTokens)
  const readTokens = promptTokens - (promptMedia?.tokens ?? 0) - (promptUnreadTokens ?? 0)
  const textMin = Math.max(0, Math.ceil((readTokens * bytesPerToken - tellingSlackChars) / charsPerTokenMax))
  const promptMinTokens = byok ? Math.min(1, textMin) : textMin
  const limitTokens = limitExcludesThinking(attempt) ? null : maxTokens
  const outputMaxTokens = hasOutput ? (limitTokens ?? (model.maxOutputTokens ?? windowTokens) * answers) : 0
  return {
    promptTokens,
    promptMinTokens,
    promptMaxTokens,
    outputMaxTokens,
    isAsked: limitTokens !== null,
    thinksUnseen: thinksUnseen(request, model),
    predictedTokens: predictedTokensOf(request),
  }
}

/**
 * Limits output to what the caller asked for. A provider whose limit excludes thinking bills the thinking beside it (decision 0767). It is charged up to the
 * amount that a strict budget holds for. `isGuess`: the provider has not said how much of the output is thinking, so all of it counts up to that amount.
 */
export function charged(
  tokens: TokenUsage,
  request: Pick<ParsedRequest, 'maxTokens' | 'answers' | 'asksThought'>,
  attempt: Attempt | null,
  isGuess: boolean,
): TokenUsage {
  const { maxTokens } = request
  if (maxTokens === null || attempt === null || !limitExcludesThinking(attempt)) return cappedAt(tokens, maxTokens)
  const ceiling = outputCeiling(request, attempt)
  return cappedAt(tokens, isGuess ? ceiling : Math.min(maxTokens + tokens.reasoningTokens, ceiling))
}

/** Returns the most tokens of a `prediction`. Tokens that the model rejects are charged as output, but the caller does not see them. */
function predictedTokensOf({ native: { format, body } }: ParsedRequest): number {
  const prediction = format === 'openai' ? body['prediction'] : undefined
  if (prediction === undefined || prediction === null) return 0
  if (typeof prediction !== 'object') return bytesOf(prediction)
  let bytes = predictionBytes.get(prediction)
  if (bytes === undefined) {
    bytes = bytesOf(prediction)
    predictionBytes.set(prediction, bytes)
  }
  return bytes
}

/** The bytes of each prediction that was looked at. A prediction may have 30 MB, and each look at a usage asks for it. */
const predictionBytes = new WeakMap<object, number>()

/** Returns about the bytes of the JSON of a value: its texts and names, and a few for each value. */
function bytesOf(value: unknown): number {
  if (typeof value === 'string') return Buffer.byteLength(value) + 2
  if (typeof value !== 'object' || value === null) return 8
  if (Array.isArray(value)) return value.reduce<number>((sum, each) => sum + bytesOf(each) + 1, 2)
  return Object.entries(value).reduce((sum, [name, each]) => sum + Buffer.byteLength(name) + bytesOf(each) + 4, 2)
}

/** Returns true when the figures are plausible for any reply of at most `charsMax` characters, so that the reply need not be counted. */
export function isPlain(claimed: TokenUsage, bounds: UsageBounds, charsMax: number): boolean {
  const { promptTokens, completionTokens } = claimed
  return (
    promptTokens <= bounds.promptMaxTokens &&
    promptTokens >= bounds.promptMinTokens &&
    completionTokens <= unshownSlackTokens &&
    completionTokens <= bounds.outputMaxTokens &&
    charsMax <= completionTokens * charsPerTokenMax + tellingSlackChars
  )
}

/** Returns the same object when the figures fit the request and the reply. Otherwise it returns plausible figures, marked as doubted. */
export function believed(claimed: TokenUsage, bounds: UsageBounds, outputChars: number): TokenUsage {
  if (isPlain(claimed, bounds, outputChars)) return claimed
  const prompt = promptOf(claimed, bounds)
  const output = outputOf(claimed, bounds, outputChars)
  if (prompt.doubt === null && output.doubt === null) return claimed
  const { cachedTokens, cacheWriteTokens, reasoningTokens } = claimed
  const cached = Math.min(cachedTokens, prompt.tokens)
  return {
    ...claimed,
    promptTokens: prompt.tokens,
    completionTokens: output.tokens,
    cachedTokens: cached,
    cacheWriteTokens: Math.min(cacheWriteTokens, prompt.tokens - cached),
    reasoningTokens: Math.min(reasoningTokens, output.tokens),
    doubt: output.doubt ?? prompt.doubt ?? 'output_above',
  }
}

type Looked = { readonly tokens: number; readonly doubt: TokenUsage['doubt'] | null }

function promptOf({ promptTokens }: TokenUsage, bounds: UsageBounds): Looked {
  if (promptTokens > bounds.promptMaxTokens) return { tokens: bounds.promptMaxTokens, doubt: 'input_above' }
  return promptTokens < bounds.promptMinTokens ? { tokens: bounds.promptTokens, doubt: 'input_below' } : { tokens: promptTokens, doubt: null }
}

function outputOf({ completionTokens, reasoningTokens }: TokenUsage, bounds: UsageBounds, outputChars: number): Looked {
  const { outputMaxTokens, isAsked, thinksUnseen, predictedTokens } = bounds
  if (outputChars > completionTokens * charsPerTokenMax + tellingSlackChars) return { tokens: tokensOfChars(outputChars), doubt: 'output_below' }
  const shownMax = outputChars * tokensPerCharMax
  // A model may write more than the catalog says. It is believed as far as its shown text goes.
  const ceiling = isAsked ? outputMaxTokens : Math.max(outputMaxTokens, shownMax)
  const most = thinksUnseen || reasoningTokens > 0 ? ceiling : Math.min(ceiling, shownMax + predictedTokens + unshownSlackTokens)
  if (completionTokens <= most) return { tokens: completionTokens, doubt: null }
  // Some providers count thinking beyond the requested limit. That is no reason for doubt: the charge is cut at the limit anyway.
  const isFar = completionTokens > 2 * most + unshownSlackTokens
  return isFar || !isAsked ? { tokens: most, doubt: 'output_above' } : { tokens: completionTokens, doubt: null }
}
