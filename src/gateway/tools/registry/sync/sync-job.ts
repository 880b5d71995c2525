import type { Clock } from '../../../../platform/clock.ts'
import type { Db } from '../../../../platform/db/db.ts'
import { GatewayError } from '../../../../platform/errors.ts'
import type { Log } from '../../../../platform/observe/log.ts'
import { claimDueServer } from './sync-queries.ts'
import type { ToolLooks } from './tool-look.ts'
import type { ToolSync } from './tool-sync.ts'

export interface SyncJobDeps {
  readonly db: Db
  readonly clock: Clock
  readonly log: Log
  readonly sync: ToolSync
  readonly looks: Pick<ToolLooks, 'busyOrgs'>
  /** Pause between two syncs of a server: the setting TOOL_SYNC_MINUTES. */
  readonly pauseMs: number
}

/** How often a process looks for servers whose sync is due. */
export const syncJobMs = 60_000
/** Maximum number of servers that the job reads concurrently. A server that hangs uses one of these places until its time is over. */
const concurrencyMax = 8
/** A run claims no further server after this time, so that it does not delay other jobs for long. The rest is due in the next run. */
const claimsMaxMs = 45_000

/** Reads the tools of every server whose sync is due. */
export async function syncDueServers(deps: SyncJobDeps, signal: AbortSignal): Promise<void> {
  const endMs = deps.clock.monotonicMs() + claimsMaxMs
  const isOver = (): boolean => signal.aborted || deps.clock.monotonicMs() >= endMs
  await Promise.all(Array.from({ length: concurrencyMax }, () => syncOneByOne(deps, signal, isOver)))
}

async function syncOneByOne({ db, clock, log, sync, looks, pauseMs }: SyncJobDeps, signal: AbortSignal, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    const nowMs = clock.nowMs()
    const due = await db.maybe(claimDueServer, new Date(nowMs), new Date(nowMs + pauseMs), looks.busyOrgs)
    if (due === null) return
    try {
      await sync.sync(due.orgId, due.id, signal)
    } catch (error) {
      if (signal.aborted) return
      // The server was removed meanwhile, or people read other servers of the organisation. Its next sync is due after the pause.
      if (!(error instanceof GatewayError)) log.warn('tool_sync_failed', { orgId: due.orgId, error })
    }
  }
}
