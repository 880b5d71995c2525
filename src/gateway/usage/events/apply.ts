/** Inserts usage events, inside the transaction in which the flush changes the counters. */
import type { Tx } from '../../../platform/db/db.ts'
import { insertEvents } from '../queries.ts'
import { countOf, intOf, istDays, modelText, wholeMs } from './columns.ts'
import type { UsageEvent } from './record.ts'

/** Inserts the events that the table does not contain yet, and returns their ids. Only these events may change counters. */
export async function insertUsageEvents(tx: Tx, events: readonly UsageEvent[]): Promise<readonly string[]> {
  if (events.length === 0) return []
  const dayOf = istDays()
  const { count: inserted, ids } = await tx.one(
    insertEvents,
    events.map(e => dayOf(e.atMs)),
    events.map(e => e.id),
    events.map(e => new Date(e.atMs)),
    events.map(e => e.requestId),
    events.map(e => e.orgId),
    events.map(e => e.userId),
    events.map(e => e.keyId),
    events.map(e => e.workspaceId),
    events.map(e => e.agentId),
    events.map(e => e.agentLabel),
    events.map(e => e.kind),
    events.map(e => modelText(e.model)),
    events.map(e => e.provider),
    events.map(e => e.residency),
    events.map(e => e.streamed),
    events.map(e => e.byok),
    events.map(e => e.status),
    events.map(e => e.outcome),
    events.map(e => countOf(e.promptTokens)),
    events.map(e => countOf(e.completionTokens)),
    events.map(e => countOf(e.cachedTokens)),
    events.map(e => countOf(e.reasoningTokens)),
    events.map(e => e.estimated),
    events.map(e => e.valueUinr),
    events.map(e => e.costUinr),
    events.map(e => wholeMs(e.latencyMs)),
    events.map(e => (e.firstByteMs === null ? null : wholeMs(e.firstByteMs))),
    // Journal records of earlier versions do not have these fields.
    events.map(e => countOf(e.cacheWriteTokens)),
    events.map(e => intOf(e.images)),
    events.map(e => intOf(e.audioSeconds)),
    events.map(e => countOf(e.characters)),
    events.map(e => e.tried ?? null),
    events.map(e => e.runId ?? null),
    events.map(e => e.runAgentId ?? null),
    events.map(e => e.tags ?? null),
    events.map(e => e.runPart ?? null),
    events.map(e => intOf(e.searches)),
    events.map(e => e.savedUinr ?? null),
  )
  return inserted === BigInt(events.length) ? events.map(e => e.id) : (ids ?? [])
}
