import { defaultOperatorFile } from './app.ts'

interface OperatorFile {
  readonly providers?: readonly object[]
  readonly models?: readonly object[]
}

/** Returns an operator's file (default: that of the harness) whose chat models may think at any length, so that any reported usage is plausible. */
export function longThinkers(urls: Parameters<typeof defaultOperatorFile>[0], fileOf: (from: typeof urls) => OperatorFile = defaultOperatorFile): OperatorFile {
  const file = fileOf(urls)
  const thinks = (model: object): object => ('kind' in model && model.kind === 'chat' ? { ...model, reasoning: true, max_output_tokens: 1_000_000_000 } : model)
  return { ...file, models: (file.models ?? []).map(thinks) }
}

/** Number of output tokens of `alpha-only` that cost one rupee, at ₹40 a million. */
export const thoughtTokensPerInr = 25_000

/** Returns a usage of `alpha-only` that costs the given number of rupees. */
export function usageWorth(inr: number): Readonly<Record<string, number>> {
  const tokens = Math.round(inr * thoughtTokensPerInr)
  return { prompt_tokens: 0, completion_tokens: tokens, total_tokens: tokens }
}
