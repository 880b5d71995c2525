import type { Clock } from '../../../platform/clock.ts'
import { DatabaseUnavailableError, type Db, type Tx } from '../../../platform/db/db.ts'
import type { ControlLog } from '../../../platform/db/db-control-log.ts'
import { GatewayError } from '../../../platform/errors.ts'
import { istDay } from '../../../platform/values/ist-time.ts'
import type { Mail } from '../../mail/mail.ts'
import { disabledFromMs, type InactivityStep, inactivityStep } from './inactivity.ts'
import { disableIdle, findIdle, type InactivityRow, lockIdle, noticeReaders, setNotice } from './inactivity-queries.ts'
import type { KeyUse } from './key-use.ts'

export interface InactivitySweepDeps {
  readonly db: Db
  readonly clock: Clock
  readonly controlLog: ControlLog
  readonly mail: Pick<Mail, 'enqueue'>
  readonly use: KeyUse
  /** The setting KEY_NOTICE_DAYS. */
  readonly noticeDays: number
  readonly baseUrl: () => string
  /** Is called after the commit for each key that the sweep disabled. It writes the line of the audit trail. */
  readonly onDisabled: (orgId: number, keyId: number) => Promise<void>
}

/** Pause between two sweeps, in milliseconds. An hour is short enough, because the rule counts days. */
export const inactivitySweepMs = 3600_000
const batchMax = 500

type LockedRow = NonNullable<Awaited<ReturnType<typeof read>>>

/**
 * Checks the keys of all organisations once. A key that has been idle for too long gets notice, and a mail is written. A key that is in use
 * again loses its notice. A key that stayed unused for the whole notice is disabled, never deleted. Each key has its own short transaction.
 * When a key fails, the sweep goes on with the others and throws an AggregateError at the end. Stops early when the signal aborts or the
 * database is unavailable.
 */
export async function sweepInactivity(deps: InactivitySweepDeps, signal: AbortSignal): Promise<void> {
  // Writes the uses that this process has noted before it judges keys. Other processes write theirs every half minute.
  await deps.use.flush()
  const failures: unknown[] = []
  let aboveId = 0
  for (;;) {
    const batch = await deps.db.many(findIdle, aboveId, new Date(deps.clock.nowMs()), batchMax)
    for (const row of batch) {
      if (signal.aborted) return
      aboveId = row.id
      try {
        if ((await judge(deps, row)) === 'disable') await deps.onDisabled(row.orgId, row.id)
      } catch (error) {
        if (error instanceof DatabaseUnavailableError) throw error
        failures.push(error)
      }
    }
    if (batch.length < batchMax) break
  }
  if (failures.length > 0) throw new AggregateError(failures, `${failures.length} keys could not be judged`)
}

function judge(deps: InactivitySweepDeps, { id, orgId }: InactivityRow): Promise<InactivityStep> {
  return deps.controlLog.change(async tx => {
    const key = await read(tx, orgId, id)
    const nowMs = deps.clock.nowMs()
    const step = key === null ? 'none' : stepOf(deps, id, key, nowMs)
    if (key === null || step === 'none') return { value: 'none', news: [] }
    if (step === 'notice') await giveNotice(deps, tx, orgId, id, key, nowMs)
    else if (step === 'withdraw') await tx.exec(setNotice, orgId, id, null)
    else await tx.exec(disableIdle, orgId, id)
    return { value: step, news: [{ kind: 'key_changed', ref: String(id) }] }
  })
}

function read(tx: Tx, orgId: number, keyId: number) {
  return tx.maybe(lockIdle, orgId, keyId)
}

function stepOf({ use, noticeDays }: InactivitySweepDeps, keyId: number, key: LockedRow, nowMs: number): InactivityStep {
  const lastUsedAtMs = Math.max(key.lastUsedAt?.getTime() ?? 0, use.pendingMs(keyId) ?? 0)
  return inactivityStep(
    {
      createdAtMs: key.createdAt.getTime(),
      lastUsedAtMs: lastUsedAtMs === 0 ? null : lastUsedAtMs,
      idleFromMs: key.idleFrom?.getTime() ?? null,
      noticeAtMs: key.noticeAt?.getTime() ?? null,
      isPinned: key.pin !== null,
    },
    { days: key.days, noticeDays },
    nowMs,
  )
}

async function giveNotice(
  { mail, noticeDays, baseUrl }: InactivitySweepDeps,
  tx: Tx,
  orgId: number,
  keyId: number,
  key: LockedRow,
  nowMs: number,
): Promise<void> {
  await tx.exec(setNotice, orgId, keyId, new Date(nowMs))
  const disabledOn = istDay(disabledFromMs(nowMs, { days: key.days, noticeDays }))
  for (const reader of await tx.many(noticeReaders, orgId, key.userId)) {
    const letter = {
      orgId,
      to: reader.email,
      template: 'key_inactivity',
      data: { orgName: key.orgName, keyName: key.name, keyPrefix: key.prefix, disabledOn, link: `${baseUrl()}/auth?return_to=%2Fme%2Fkeys` },
      onceKey: `key_inactivity:${keyId}:${nowMs}:${reader.userId}`,
    } as const
    // An invalid mail address must not prevent the notice. The console shows the notice too.
    await mail.enqueue(tx, letter).catch((error: unknown) => {
      if (!(error instanceof GatewayError && error.errorName === 'bad_email')) throw error
    })
  }
}
