/** The time of the last call of each agent. The flush of the usage journal writes it, so no call waits for it. Decision 0573 says why. */
import { statement, type Tx } from '../platform/db/db.ts'

/** The fields of a usage event that this file needs. */
interface CallOfAgent {
  readonly orgId: number
  readonly agentId: number | null
  readonly atMs: number
}

/**
 * Moves the times of the last calls forward. A time that is less than ten seconds old stays, so a busy agent costs one write in that time. A row that
 * another transaction has locked is left out, so the flush never waits for it.
 */
const moveLastCalls = statement<[orgIds: readonly number[], agentIds: readonly number[], at: readonly Date[]]>(
  'agents.move_last_calls',
  `with called as materialized (select * from unnest($1::int[], $2::int[], $3::timestamptz[]) as c(org_id, id, at)),
     locked as materialized (select a.id, called.at from called join agents a on a.org_id = called.org_id and a.id = called.id
       where a.last_call_at is null or a.last_call_at < called.at - interval '10 seconds' order by a.id for no key update of a skip locked)
   update agents a set last_call_at = locked.at from locked where a.id = locked.id`,
)

/** Notes the last calls of the agents in these usage events, in the transaction of the flush. */
export async function noteLastCalls(tx: Tx, events: readonly CallOfAgent[]): Promise<readonly string[]> {
  const latest = new Map<number, CallOfAgent>()
  for (const event of events) {
    if (event.agentId === null) continue
    const before = latest.get(event.agentId)
    if (before === undefined || before.atMs < event.atMs) latest.set(event.agentId, event)
  }
  if (latest.size === 0) return []
  const calls = [...latest.values()]
  await tx.exec(
    moveLastCalls,
    calls.map(call => call.orgId),
    [...latest.keys()],
    calls.map(call => new Date(call.atMs)),
  )
  return []
}
