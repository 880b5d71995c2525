/** Curated orders of models, for the presets and for routing by predicted quality. They are data, and the operator's file may override each list. */
import { z } from 'zod'

/** The capabilities by which models are ranked. */
export type Capability = 'code' | 'math' | 'multilingual' | 'long-context' | 'reasoning' | 'general'

export interface Rankings {
  /** Model ids, best first. */
  readonly capabilities: Readonly<Record<Capability, readonly string[]>>
  /** Model ids by how reliably they call tools, most reliable first. */
  readonly toolCalls: readonly string[]
  /** Routes (`provider/model`) that are known to corrupt the arguments of tool calls. */
  readonly corruptsToolCalls: ReadonlySet<string>
  /** The tier of a model. 3 is one of the best, and 2 is good. A model that is not listed has tier 1. */
  readonly tiers: ReadonlyMap<string, 2 | 3>
}

const ids = z.array(z.string().min(1).max(256)).max(500)
const ranked = ids.describe('Model ids, the best first. Ids that the catalog does not have are passed over.')
const lists = { code: ranked, math: ranked, multilingual: ranked, 'long-context': ranked, reasoning: ranked, general: ranked }

/** catalog/rankings.json. */
export const rankingsFile = z.strictObject({
  capabilities: z.strictObject(lists).describe('What quality-prediction routing walks, by what the prompt asks for.'),
  tool_calls: ids.describe('Model ids by how reliably they call tools, the most reliable first: auto:agent.'),
  corrupts_tool_calls: ids.describe('Routes (provider/model) that break the arguments of tool calls: never used by auto:agent.'),
  tiers: z
    .strictObject({ good: ids.describe('Good enough for prompts of middling difficulty.'), best: ids.describe('Good enough for hard prompts.') })
    .describe('How capable models are, for auto and auto:balanced. A model that is not named answers easy prompts.'),
})

/** The rankings in the operator's file. A given list replaces the catalog's list completely. */
export const rankingsOverride = z.strictObject({
  ...rankingsFile.partial().shape,
  capabilities: z.strictObject(lists).partial().optional().describe('What quality-prediction routing walks, by what the prompt asks for.'),
  tiers: rankingsFile.shape.tiers.partial().optional(),
})

export type RankingsFile = z.output<typeof rankingsFile>
export type RankingsOverride = z.output<typeof rankingsOverride>

/** Returns the rankings of the data file with the operator's lists. */
export function toRankings(file: RankingsFile, override: RankingsOverride | undefined): Rankings {
  const tiers = { good: override?.tiers?.good ?? file.tiers.good, best: override?.tiers?.best ?? file.tiers.best }
  const ofCapability = (capability: Capability): readonly string[] => override?.capabilities?.[capability] ?? file.capabilities[capability]
  return {
    capabilities: {
      code: ofCapability('code'),
      math: ofCapability('math'),
      multilingual: ofCapability('multilingual'),
      'long-context': ofCapability('long-context'),
      reasoning: ofCapability('reasoning'),
      general: ofCapability('general'),
    },
    toolCalls: override?.tool_calls ?? file.tool_calls,
    corruptsToolCalls: new Set(override?.corrupts_tool_calls ?? file.corrupts_tool_calls),
    tiers: new Map([...tiers.good.map(id => [id, 2] as const), ...tiers.best.map(id => [id, 3] as const)]),
  }
}

/** Rankings without any model. */
export const noRankings: Rankings = {
  capabilities: { code: [], math: [], multilingual: [], 'long-context': [], reasoning: [], general: [] },
  toolCalls: [],
  corruptsToolCalls: new Set(),
  tiers: new Map(),
}
