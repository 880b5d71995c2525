/**
 * What of the figures that a provider reports is believed: honest ones as they are, others within what was asked for and what came.
 * Decision 0383 says why.
 */
import type { Attempt } from '../../routing/plan.ts'
import { bytesPerToken, type TokenUsage } from '../../wire/usage.ts'
import type { ParsedRequest } from '../kinds/request.ts'
import { windowTokensOf } from '../prompt-most.ts'
import { tokensOfChars } from './estimate.ts'
import { thinksUnseen } from './thinks-unseen.ts'

/** A prompt has at most a token for each of its bytes, of which an estimated token stands for three; what a provider adds of its own comes on top. */
const promptFactor = 4
const promptSlackTokens = 32_768
/** Text is believed to have so many tokens a byte. No tokenizer makes more than one; the rest is for what a provider counts beside. */
const tokensPerCharMax = 4
/** What a model that shows what it makes may make beside: calls of tools, marks, a little thought. */
const unshownSlackTokens = 8192
/** The longest tokens are runs of spaces; below this a figure cannot be that of its text. */
const charsPerTokenMax = 128
const tellingSlackChars = 64

/** What a call may come to. */
export interface UsageBounds {
  /** The estimate of the prompt. */
  readonly promptTokens: number
  readonly promptMinTokens: number
  readonly promptMaxTokens: number
  /** What was asked for, else what the model can write. */
  readonly outputMaxTokens: number
  /** The caller has named the most. */
  readonly isAsked: boolean
  readonly thinksUnseen: boolean
  /** Output that the caller has foretold, which is charged where the model does not say it. */
  readonly predictedTokens: number
}

/** The bounds of a call on one attempt. */
export function usageBoundsOf(request: ParsedRequest, attempt: Attempt, hasOutput: boolean): UsageBounds {
  const { promptTokens, promptMedia, promptUnreadTokens, maxTokens, answers } = request
  const { model, byok } = attempt
  const windowTokens = windowTokensOf(attempt)
  // Pictures, files and sound are counted by each model in its own way, and providers add text of their own: only what no window holds is a lie.
  const promptMaxTokens = Math.max(promptTokens * promptFactor + promptSlackTokens, windowTokens)
  const readTokens = promptTokens - (promptMedia?.tokens ?? 0) - (promptUnreadTokens ?? 0)
  const textMin = Math.max(0, Math.ceil((readTokens * bytesPerToken - tellingSlackChars) / charsPerTokenMax))
  const promptMinTokens = byok ? Math.min(1, textMin) : textMin
  const outputMaxTokens = hasOutput ? (maxTokens ?? (model.maxOutputTokens ?? windowTokens) * answers) : 0
  return {
    promptTokens,
    promptMinTokens,
    promptMaxTokens,
    outputMaxTokens,
    isAsked: maxTokens !== null,
    thinksUnseen: thinksUnseen(request, model),
    predictedTokens: predictedTokensOf(request),
  }
}

/** Tokens of a `prediction` at most: those that the model rejects are charged as output, and nobody is shown them. */
function predictedTokensOf({ native: { format, body } }: ParsedRequest): number {
  const prediction = format === 'openai' ? body['prediction'] : undefined
  return prediction === undefined || prediction === null ? 0 : Buffer.byteLength(JSON.stringify(prediction))
}

/** True: nothing in these figures needs a look at what came, of which there are at most so many characters. */
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

/** The same object when the figures fit what was asked and what came; else what can be true of them, marked as doubted. */
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
  // A model that writes more than its row says is believed as far as it shows it.
  const ceiling = isAsked ? outputMaxTokens : Math.max(outputMaxTokens, shownMax)
  const most = thinksUnseen || reasoningTokens > 0 ? ceiling : Math.min(ceiling, shownMax + predictedTokens + unshownSlackTokens)
  if (completionTokens <= most) return { tokens: completionTokens, doubt: null }
  // Some providers count what they thought beyond the most that was asked for: that is cut as ever, and no lie.
  const isFar = completionTokens > 2 * most + unshownSlackTokens
  return isFar || !isAsked ? { tokens: most, doubt: 'output_above' } : { tokens: completionTokens, doubt: null }
}
