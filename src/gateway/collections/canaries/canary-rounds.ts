import type { Clock } from '../../../platform/clock.ts'
import type { Db, Tx } from '../../../platform/db/db.ts'
import type { CancelSignal } from '../../../platform/loop/cancellation.ts'
import { latencyBucket } from '../../../platform/observe/latency-buckets.ts'
import type { StoredStep } from '../../routing/chains.ts'
import { distinctSteps, failedBucket, stepKey } from '../monitoring/health.ts'
import { endRound, holdCollection, lockRound, type RoundCollection } from '../monitoring/monitor-queries.ts'
import { addToHealth, insertChecks, upsertCanaries } from './canary-queries.ts'
import type { CanarySlots } from './canary-slots.ts'

/** The result of one canary. */
export type CanaryResult =
  | { readonly kind: 'ok'; readonly provider: string; readonly latencyMs: number }
  | { readonly kind: 'failed'; readonly code: string }
  | { readonly kind: 'unsupported' }

/** Makes one canary of a step within a time limit. Rejects when the signal aborts, and when the gateway itself could not make the canary. */
export type ProbeStep = (
  probed: { readonly orgId: number; readonly modelId: string; readonly step: { readonly model: string; readonly provider: string | null } },
  signal: CancelSignal,
) => Promise<CanaryResult>

export interface CanaryRoundsDeps {
  readonly db: Db
  readonly clock: Clock
  readonly probeStep: ProbeStep
  /** Returns a number for the founder of an organisation. All organisations of a founder share the founder's slots. */
  holderOf(orgId: number): Promise<number>
  /** Evaluates the alerts, in the transaction that wrote a round. */
  afterRound(tx: Tx, round: WrittenRound): Promise<void>
}

export interface WrittenRound {
  readonly collection: Pick<RoundCollection, 'id' | 'orgId'>
  /** The present name of the collection. */
  readonly name: string
  readonly slug: string
  /** The present steps of the collection. */
  readonly steps: readonly StoredStep[]
}

/** A round that has been claimed. */
export interface Round {
  readonly collection: RoundCollection
  /** The begin of the round, as the claim wrote it. */
  readonly begunAt: Date
  /** True when a caller waits for the round. Its results are then stored even if the collection is not monitored. */
  isAsked: boolean
  /** True when the results of the round are discarded. No caller can join such a round. */
  isDropped?: boolean
}

interface Found {
  readonly step: StoredStep
  readonly result: Exclude<CanaryResult, { kind: 'unsupported' }>
}

const hourMs = 3600_000

/**
 * Runs a claimed round. All steps run concurrently while there is room. A step that occurs twice runs once. Stores the results, unless the collection
 * was deleted or its monitoring was switched off in the meantime. Rejects with the signal's reason when the signal aborts, and then stores nothing.
 */
export async function runRound(round: Round, slots: CanarySlots, signal: CancelSignal, deps: CanaryRoundsDeps): Promise<void> {
  const { orgId, modelId, steps } = round.collection
  const holder = await deps.holderOf(orgId)
  const results = await Promise.all(
    distinctSteps(steps).map(async step => {
      const probed = { orgId, modelId, step: { model: step.model, provider: step.provider ?? null } }
      const result = await slots.run(holder, () => {
        signal.throwIfAborted()
        return deps.probeStep(probed, signal)
      })
      return { step, result }
    }),
  )
  signal.throwIfAborted()
  const found = results.flatMap(({ step, result }) => (result.kind === 'unsupported' ? [] : [{ step, result }]))
  await deps.db.tx(tx => writeRound(tx, round, found, deps))
}

async function writeRound(tx: Tx, round: Round, found: readonly Found[], deps: CanaryRoundsDeps): Promise<void> {
  const { collection, begunAt } = round
  const { orgId, id } = collection
  const now = await tx.maybe(holdCollection, orgId, id)
  const state = now === null ? null : await tx.maybe(lockRound, orgId, id)
  if (now === null || state === null) return
  if (state.isMonitored || round.isAsked) {
    await writeFound(tx, orgId, id, begunAt, found)
    await deps.afterRound(tx, { collection, ...now })
  } else round.isDropped = true
  await tx.exec(endRound, orgId, id, begunAt, new Date(deps.clock.nowMs()))
}

async function writeFound(tx: Tx, orgId: number, id: number, at: Date, found: readonly Found[]): Promise<void> {
  if (found.length === 0) return
  // Every transaction writes the rows in this order, because two rounds may write the same rows.
  const rows = [...found].sort((a, b) => (stepKey(a.step) < stepKey(b.step) ? -1 : 1))
  const results = rows.map(({ result }) => result)
  const models = rows.map(({ step }) => step.model)
  const pinned = rows.map(({ step }) => step.provider ?? '')
  const providers = results.map(result => (result.kind === 'ok' ? result.provider : null))
  const oks = results.map(({ kind }) => kind === 'ok')
  const codes = results.map(result => (result.kind === 'ok' ? null : result.code))
  const latenciesMs = results.map(result => (result.kind === 'ok' ? result.latencyMs : null))
  const buckets = latenciesMs.map(latencyMs => (latencyMs === null ? failedBucket : latencyBucket(latencyMs)))
  await tx.exec(insertChecks, orgId, id, at, models, pinned, providers, oks, latenciesMs, codes)
  await tx.exec(upsertCanaries, orgId, id, at, models, pinned, providers, oks, codes)
  await tx.exec(addToHealth, orgId, id, new Date(Math.floor(at.getTime() / hourMs) * hourMs), models, pinned, buckets)
}
