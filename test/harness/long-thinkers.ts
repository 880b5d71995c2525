import { defaultOperatorFile } from './app.ts'

interface OperatorFile {
  readonly providers?: readonly object[]
  readonly models?: readonly object[]
}

/** The chat models of a file (default: that of the harness) as ones that may think at any length: a provider may then report what it likes. */
export function longThinkers(urls: Parameters<typeof defaultOperatorFile>[0], fileOf: (from: typeof urls) => OperatorFile = defaultOperatorFile): OperatorFile {
  const file = fileOf(urls)
  const thinks = (model: object): object => ('kind' in model && model.kind === 'chat' ? { ...model, reasoning: true, max_output_tokens: 1_000_000_000 } : model)
  return { ...file, models: (file.models ?? []).map(thinks) }
}

/** Tokens of output that cost a rupee with `alpha-only`: ₹40 a million. */
export const thoughtTokensPerInr = 25_000

/** A usage that costs so many rupees with `alpha-only`. */
export function usageWorth(inr: number): Readonly<Record<string, number>> {
  const tokens = Math.round(inr * thoughtTokensPerInr)
  return { prompt_tokens: 0, completion_tokens: tokens, total_tokens: tokens }
}
