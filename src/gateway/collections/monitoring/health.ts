/** The health of the steps of a collection: figures from sums of canaries. Decision 0336 says why. */
import type { Clock } from '../../../platform/clock.ts'
import { type Db, statement } from '../../../platform/db/db.ts'
import { quantileMs } from '../../../platform/observe/latency-buckets.ts'
import type { StoredStep } from '../../routing/chains.ts'

const hourMs = 3600_000
const dayMs = 24 * hourMs
/** The latency bucket that counts failed canaries. */
export const failedBucket = -1

/**
 * Returns the key of a step. The key depends on the content of the step and not on its position, so a step keeps its history when steps are moved. An
 * empty provider means that the step has no pinned provider.
 */
export const stepKey = (step: StoredStep): string => keyOf(step.model, step.provider ?? '')
const keyOf = (model: string, pinned: string): string => JSON.stringify([model, pinned])

/** Returns each step once, even if it occurs twice. */
export const distinctSteps = (steps: readonly StoredStep[]): readonly StoredStep[] => [...new Map(steps.map(step => [stepKey(step), step])).values()]

export type StepState = 'ok' | 'failing' | 'unknown' | 'unsupported'

export interface StepHealth {
  readonly model: string
  /** The pinned provider. For a step without a pinned provider, the provider that answered last, or null. */
  readonly provider: string | null
  /** Share of answered canaries, from 0 to 1. Null without canaries. It is 1 only when all canaries were answered. */
  readonly uptime: number | null
  readonly p95Ms: number | null
  readonly checks: number
  readonly lastCheck: Date | null
  readonly state: StepState
  /** The error code of the last canary, if it failed. */
  readonly lastCode: string | null
}

export interface HealthDeps {
  readonly db: Db
  readonly clock: Clock
  /** Returns false for steps without canaries. */
  isProbed(modelId: string, step: StoredStep): boolean
}

/** Returns the health of the present steps in their order. It reads only sums: hours for about the last week, and days before that. */
export async function healthOf(
  collection: { readonly id: number; readonly orgId: number; readonly modelId: string; readonly steps: readonly StoredStep[] },
  days: number,
  { db, clock, isProbed }: HealthDeps,
): Promise<StepHealth[]> {
  const { id, orgId, modelId, steps } = collection
  const fromMs = clock.nowMs() - days * dayMs
  const [sums, canaries] = await Promise.all([
    db.many(sumHealth, orgId, id, new Date(Math.floor(fromMs / dayMs) * dayMs), new Date(Math.floor(fromMs / hourMs) * hourMs)),
    db.many(listCanaries, orgId, id),
  ])
  const sumsOf = new Map<string, HealthSum[]>()
  for (const sum of sums) {
    const key = keyOf(sum.model, sum.pinned)
    const known = sumsOf.get(key)
    if (known === undefined) sumsOf.set(key, [sum])
    else known.push(sum)
  }
  const lastOf = new Map(canaries.map(canary => [keyOf(canary.model, canary.pinned), canary]))
  return steps.map(step => stepHealth(step, isProbed(modelId, step), sumsOf.get(stepKey(step)) ?? [], lastOf.get(stepKey(step)) ?? null))
}

function stepHealth(step: StoredStep, isProbed: boolean, sums: readonly HealthSum[], last: LastCanary | null): StepHealth {
  const checks = sums.reduce((total, sum) => total + sum.checks, 0)
  const answered = sums.filter(({ bucket }) => bucket !== failedBucket)
  const good = answered.reduce((total, sum) => total + sum.checks, 0)
  return {
    model: step.model,
    provider: step.provider ?? last?.provider ?? null,
    uptime: checks === 0 ? null : Math.floor((good / checks) * 10_000) / 10_000,
    p95Ms: quantileMs(
      answered.map(({ bucket, checks: count }) => ({ bucket, count })),
      0.95,
    ),
    checks,
    lastCheck: last?.at ?? null,
    state: !isProbed ? 'unsupported' : last === null ? 'unknown' : last.ok ? 'ok' : 'failing',
    lastCode: last === null || last.ok ? null : last.code,
  }
}

export interface HealthSum {
  readonly model: string
  readonly pinned: string
  /** The bucket of the latency. -1 for failed canaries. */
  readonly bucket: number
  readonly checks: number
}

/** Sums the canaries of all steps that the collection ever had. It reads hours from `hour` on, and days from `day` on. */
const sumHealth = statement<[orgId: number, collectionId: number, day: Date, hour: Date], HealthSum>(
  'collections.sum_health',
  `select model, pinned, bucket::int as "bucket", sum(checks)::int as "checks" from collection_health
   where org_id = $1::int and collection_id = $2::int and starts_at >= $3::timestamptz and (is_day or starts_at >= $4::timestamptz)
   group by 1, 2, 3`,
)

export interface LastCanary {
  readonly model: string
  readonly pinned: string
  readonly at: Date
  readonly provider: string | null
  readonly ok: boolean
  readonly code: string | null
}

const listCanaries = statement<[orgId: number, collectionId: number], LastCanary>(
  'collections.list_canaries',
  'select model, pinned, at, provider, ok, code from collection_canaries where org_id = $1::int and collection_id = $2::int',
)
