/** The caps of a run: what an agent or a key allows for each of its runs, in the forms of a request, of the database and of a call. */
import { z } from 'zod'
import { inrFromUinr, uinrFromInr } from '../values/money.ts'
import { int4Max } from '../values/row-id.ts'

/** What happens to a run that repeats itself: nothing, an event, or an event and then a refusal. */
export const loopRules = ['off', 'warn', 'stop'] as const
export type LoopRule = (typeof loopRules)[number]

/** Returns the stricter of two rules. */
export const stricterLoop = (a: LoopRule, b: LoopRule): LoopRule => (loopRules.indexOf(a) > loopRules.indexOf(b) ? a : b)

/** The caps of one run. Null means no cap. */
export interface RunCaps {
  readonly maxCostUinr: bigint | null
  readonly maxCalls: number | null
  /** Minutes since the first call. */
  readonly maxMinutes: number | null
  /** Distinct sub-agents. */
  readonly maxSubagents: number | null
  /** How deep a sub-agent may be: a sub-agent of the main agent has depth 1. */
  readonly maxDepth: number | null
  /** True when each call must name its run. */
  readonly isRequired: boolean
  /** True when no call may cost more than the rest of `maxCostUinr`. */
  readonly isStrict: boolean
  readonly loop: LoopRule
}

/** The caps in the database. A missing field is no cap. */
export interface StoredRunCaps {
  readonly max_cost_uinr?: number
  readonly max_calls?: number
  readonly max_minutes?: number
  readonly max_subagents?: number
  readonly max_depth?: number
  readonly required?: boolean
  readonly strict?: boolean
  /** A missing field is `warn`. */
  readonly loop?: LoopRule
}

/** The smallest and the largest cap in rupees. Every amount within these bounds converts without loss. */
const costInrMin = 0.000001
const costInrMax = 1_000_000_000
const minutesMost = 525_600
/** The most sub-agents that a run can be given. It also bounds the rows of a run. */
export const subagentsMost = 1_000
const depthMost = 100

const ownFields = {
  max_cost_inr: z.number().min(costInrMin).max(costInrMax).nullable().optional().describe('Most rupees of all calls of a run; null = no cap.'),
  max_calls: z.int().min(1).max(int4Max).nullable().optional().describe('Most calls of a run; null = no cap.'),
  max_minutes: z.int().min(1).max(minutesMost).nullable().optional().describe('Minutes after its first call in which a run may begin calls; null = no cap.'),
  max_subagents: z.int().min(0).max(subagentsMost).nullable().optional().describe('Most distinct sub-agents of a run; null = no cap.'),
}

/** The caps that a run itself may be given. */
export const ownRunCapsShape = z.strictObject(ownFields)

/** The caps that an agent or a key may be given for each of its runs. A field that is left out does not change. Null removes a cap. */
export const runCapsShape = z.strictObject({
  ...ownFields,
  max_depth: z.int().min(0).max(depthMost).nullable().optional().describe('How deep sub-agents may be: those of the main agent have depth 1; null = no cap.'),
  required: z.boolean().optional().describe('True: each call must name its run. Default: false.'),
  strict: z.boolean().optional().describe('True: no call may cost more than the rest of max_cost_inr. Default: the last call may.'),
  loop: z
    .enum(loopRules)
    .optional()
    .describe(
      'What happens when a run repeats itself. warn: the event run.loop is sent, once for each kind. stop: a repetition is refused too. Default: warn.',
    ),
})
export type RunCapsInput = z.output<typeof runCapsShape>

/** The caps in a reply. */
export const runCapsView = z.object({
  max_cost_inr: z.number().nullable(),
  max_calls: z.int().nullable(),
  max_minutes: z.int().nullable(),
  max_subagents: z.int().nullable(),
  max_depth: z.int().nullable(),
  required: z.boolean(),
  strict: z.boolean(),
  loop: z.enum(loopRules),
})

/** Returns the caps after a change. Null when no cap is left. */
export function capsAfter(before: StoredRunCaps | null, change: RunCapsInput | null): StoredRunCaps | null {
  if (change === null) return null
  const { max_cost_inr: cost } = change
  const kept = <T>(changed: T | null | undefined, was: T | undefined): T | undefined => (changed === undefined ? was : (changed ?? undefined))
  return normal({
    max_cost_uinr: kept(cost === undefined || cost === null ? cost : Number(uinrFromInr(cost)), before?.max_cost_uinr),
    max_calls: kept(change.max_calls, before?.max_calls),
    max_minutes: kept(change.max_minutes, before?.max_minutes),
    max_subagents: kept(change.max_subagents, before?.max_subagents),
    max_depth: kept(change.max_depth, before?.max_depth),
    required: change.required ?? before?.required,
    strict: change.strict ?? before?.strict,
    loop: change.loop ?? before?.loop,
  })
}

type Loose = { readonly [K in keyof StoredRunCaps]: StoredRunCaps[K] | undefined }

/** Returns the fields that say something, in a fixed order. Null when there is none. */
function normal(caps: Loose): StoredRunCaps | null {
  const order = ['max_cost_uinr', 'max_calls', 'max_minutes', 'max_subagents', 'max_depth', 'required', 'strict', 'loop'] as const
  const said = order.flatMap(name => (isDefault(caps[name]) ? [] : [[name, caps[name]] as const]))
  return said.length === 0 ? null : (Object.fromEntries(said) as StoredRunCaps)
}

const isDefault = (value: Loose[keyof Loose]): boolean => value === undefined || value === false || value === 'warn'

/** Returns true when both are the same caps. */
export function areSameCaps(a: StoredRunCaps | null, b: StoredRunCaps | null): boolean {
  return JSON.stringify(a === null ? null : normal(a)) === JSON.stringify(b === null ? null : normal(b))
}

/** Returns the first cap of `after` that allows more than `before`, by its name on the wire. Null when none does. */
export function looserCap(before: StoredRunCaps | null, after: StoredRunCaps | null): string | null {
  const [loopWas, loopIs] = [before?.loop ?? 'warn', after?.loop ?? 'warn']
  if (loopWas !== loopIs && stricterLoop(loopWas, loopIs) === loopWas) return 'loop'
  if (before === null) return null
  const numbers = [
    ['max_cost_inr', before.max_cost_uinr, after?.max_cost_uinr],
    ['max_calls', before.max_calls, after?.max_calls],
    ['max_minutes', before.max_minutes, after?.max_minutes],
    ['max_subagents', before.max_subagents, after?.max_subagents],
    ['max_depth', before.max_depth, after?.max_depth],
  ] as const
  for (const [name, was, is] of numbers) if (was !== undefined && (is === undefined || is > was)) return name
  if (before.required === true && after?.required !== true) return 'required'
  return before.strict === true && after?.strict !== true ? 'strict' : null
}

/** Returns the caps as a statement takes them. */
export const capsText = (caps: StoredRunCaps | null): string | null => (caps === null ? null : JSON.stringify(caps))

/** Returns the caps as a call reads them. Null when there is none. */
export function runCapsOf(caps: StoredRunCaps | null): RunCaps | null {
  if (caps === null) return null
  return {
    maxCostUinr: caps.max_cost_uinr === undefined ? null : BigInt(caps.max_cost_uinr),
    maxCalls: caps.max_calls ?? null,
    maxMinutes: caps.max_minutes ?? null,
    maxSubagents: caps.max_subagents ?? null,
    maxDepth: caps.max_depth ?? null,
    isRequired: caps.required === true,
    isStrict: caps.strict === true,
    loop: caps.loop ?? 'warn',
  }
}

/** Returns the caps as clients read them. */
export function runCapsViewOf(caps: StoredRunCaps | null): z.output<typeof runCapsView> | null {
  if (caps === null) return null
  return {
    max_cost_inr: caps.max_cost_uinr === undefined ? null : inrFromUinr(BigInt(caps.max_cost_uinr)),
    max_calls: caps.max_calls ?? null,
    max_minutes: caps.max_minutes ?? null,
    max_subagents: caps.max_subagents ?? null,
    max_depth: caps.max_depth ?? null,
    required: caps.required === true,
    strict: caps.strict === true,
    loop: caps.loop ?? 'warn',
  }
}
