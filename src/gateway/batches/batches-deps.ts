import type { Clock } from '../../platform/clock.ts'
import type { Config } from '../../platform/config.ts'
import type { Db } from '../../platform/db/db.ts'
import type { Call } from '../../platform/endpoint.ts'
import { fail } from '../../platform/errors.ts'
import type { Log } from '../../platform/observe/log.ts'
import type { Principal } from '../../platform/security/principal.ts'
import type { Ids } from '../../platform/values/ids.ts'
import type { InferenceDeps } from '../inference/deps.ts'
import { bearer, chargedAgent } from '../inference/pipeline.ts'
import type { LastingHolds } from '../limits/holds/lasting-holds.ts'
import type { UsageEvent } from '../usage/events/record.ts'
import type { Accounts } from './accounts.ts'
import type { Viewer } from './batch-queries.ts'
import type { BatchCaller } from './lines/batch-lines.ts'

export interface BatchesDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly config: Pick<Config, 'BATCH_FILE_MAX_BYTES' | 'BATCH_LINES_MAX' | 'BATCH_POLL_MS'>
  readonly inference: InferenceDeps
  readonly lasting: LastingHolds<UsageEvent>
  readonly accounts: Accounts
  /** Returns the founder of an organisation: one person may have several. */
  readonly founderOf: (orgId: number) => string
  /** The time of the database's clock in Unix milliseconds. */
  readonly nowMs: () => number
}

/** Returns what decides about the requests of a caller. Throws `agent_revoked_label`. */
export async function callerOf(call: Call<Principal>, { inference }: Pick<BatchesDeps, 'inference'>): Promise<BatchCaller> {
  const principal = bearer(call.principal)
  const agent = await chargedAgent(principal, call.agentLabel, inference)
  return { principal, agent, org: await inference.orgRouting(principal.orgId) }
}

/** Returns whose batches and files a caller sees: all of the organisation only a full key of an owner, of an admin, or of nobody. */
export function viewerOf(principal: Principal): Viewer {
  if (principal.kind === 'session') throw fail('invalid_api_key')
  const { orgId, keyId, userId, role } = principal
  if (principal.kind === 'agent') return [orgId, false, principal.agentId, keyId, null]
  const isFull = principal.scope === 'full'
  return [orgId, isFull && (userId === null || role === 'owner' || role === 'admin'), null, keyId, isFull ? userId : null]
}
