/**
 * Counts the calls that were refused before a provider was asked, so that a person can see why. A call only changes a number in memory. A timer writes the
 * numbers of all callers in one statement. Nothing that the caller sent is kept. Decision 0851 gives the reasons.
 */
import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import { type ErrorName, errorTable, fail, type GatewayError } from '../../../platform/errors.ts'
import type { Log } from '../../../platform/observe/log.ts'
import type { BearerPrincipal } from '../../../platform/security/principal.ts'
import { startOfIstDayMs } from '../../../platform/values/ist-time.ts'
import { int4Max } from '../../../platform/values/row-id.ts'
import { addRefusedCalls, deleteOldRefusedCalls, listRefusedCalls, type RefusedRow } from './refused-call-queries.ts'

const flushEveryMs = 5_000
const hourMs = 3600_000
const dayMs = 24 * hourMs
/** The most rows that wait in this process, of all organisations and of one. What comes beyond is not counted. */
const waitingMax = 10_000
const orgWaitingMax = 500
const deleteBatch = 5_000
/** The days that a list without a first day covers, so that it reads a bounded part of the table. */
const listedDays = 31
/** Whose limit can refuse a call. */
const scopes: ReadonlySet<unknown> = new Set(['org', 'team', 'workspace', 'member', 'key', 'agent', 'run'])
const cursorShape = /^(\d{1,15})\.(\d{1,10})\.(\d{1,10})\.([a-z_]{1,64})\.([a-z]{0,16})$/

interface Waiting {
  readonly orgId: number
  readonly hourStartMs: number
  readonly keyId: number
  readonly agentId: number
  readonly errorName: ErrorName
  readonly scope: string
  calls: number
  readonly firstMs: number
  lastMs: number
  lastRequestId: string
}

export interface RefusedFilter {
  /** The first IST day. */
  readonly from?: string | undefined
  readonly keyId?: number | undefined
  readonly agentId?: number | undefined
  /** A code of the table of errors. */
  readonly code?: string | undefined
  readonly cursor?: string | undefined
}

export interface RefusedPage {
  readonly rows: readonly RefusedRow[]
  /** Null after the last page. */
  readonly nextCursor: string | null
}

/** The refused calls of all organisations. */
export class RefusedCalls {
  readonly #db: Db
  readonly #clock: Clock
  #waiting = new Map<string, Waiting>()
  #ofOrg = new Map<number, number>()

  constructor(db: Db, clock: Clock) {
    this.#db = db
    this.#clock = clock
  }

  /** Counts a refused call. */
  note(principal: BearerPrincipal, { errorName, options }: GatewayError, requestId: string): void {
    const { orgId, keyId } = principal
    const nowMs = this.#clock.nowMs()
    const agentId = principal.kind === 'agent' ? principal.agentId : 0
    const named = options.extra?.['scope']
    const scope = scopes.has(named) ? String(named) : ''
    const hourStartMs = nowMs - (nowMs % hourMs)
    const key = `${orgId} ${hourStartMs} ${keyId} ${agentId} ${errorName} ${scope}`
    const known = this.#waiting.get(key)
    if (known !== undefined) {
      known.calls++
      known.lastMs = nowMs
      known.lastRequestId = requestId
      return
    }
    const ofOrg = this.#ofOrg.get(orgId) ?? 0
    if (ofOrg >= orgWaitingMax || this.#waiting.size >= waitingMax) return
    this.#ofOrg.set(orgId, ofOrg + 1)
    this.#waiting.set(key, { orgId, hourStartMs, keyId, agentId, errorName, scope, calls: 1, firstMs: nowMs, lastMs: nowMs, lastRequestId: requestId })
  }

  /** Writes the counted calls. Throws when the database fails; the calls then wait for the next flush. */
  async flush(): Promise<void> {
    if (this.#waiting.size === 0) return
    const batch = this.#waiting
    this.#waiting = new Map()
    this.#ofOrg = new Map()
    const rows = [...batch].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row)
    const dates = (of: (row: Waiting) => number): Date[] => rows.map(row => new Date(of(row)))
    try {
      await this.#db.exec(
        addRefusedCalls,
        rows.map(row => row.orgId),
        dates(row => row.hourStartMs),
        rows.map(row => row.keyId),
        rows.map(row => row.agentId),
        rows.map(row => row.errorName),
        rows.map(row => row.scope),
        rows.map(row => row.calls),
        dates(row => row.firstMs),
        dates(row => row.lastMs),
        rows.map(row => row.lastRequestId),
      )
    } catch (error) {
      this.#takeBack(batch)
      throw error
    }
  }

  /** Starts the flushes. The returned function stops them and flushes one last time. */
  start(log: Log): () => Promise<void> {
    const stop = this.#clock.every(flushEveryMs, () => void this.flush().catch(error => log.warn('refused_calls_flush_failed', { error })))
    return async () => {
      stop()
      await this.flush()
    }
  }

  /** Returns refused calls of an organisation, the latest hour first. Throws `bad_request` for an invalid day or cursor. */
  async list(orgId: number, { from, keyId, agentId, code, cursor }: RefusedFilter, limit: number): Promise<RefusedPage> {
    const fromMs = from === undefined ? this.#clock.nowMs() - listedDays * dayMs : startOfIstDayMs(from)
    if (fromMs === null) throw fail('bad_request', { message: 'from: must be a day, YYYY-MM-DD.' })
    const place = cursor === undefined ? newest : placeOf(cursor)
    await this.flush()
    const errors = code === undefined ? null : namesOf(code)
    const rows = await this.#db.many(listRefusedCalls, orgId, ...place, new Date(fromMs), keyId ?? null, agentId ?? null, errors, limit + 1)
    const last = rows.length > limit ? rows[limit - 1] : undefined
    return { rows: rows.slice(0, limit), nextCursor: last === undefined ? null : cursorOf(last) }
  }

  #takeBack(batch: ReadonlyMap<string, Waiting>): void {
    for (const [key, row] of batch) {
      const newer = this.#waiting.get(key)
      if (newer !== undefined) this.#waiting.set(key, { ...newer, firstMs: row.firstMs, calls: newer.calls + row.calls })
      else {
        this.#waiting.set(key, row)
        this.#ofOrg.set(row.orgId, (this.#ofOrg.get(row.orgId) ?? 0) + 1)
      }
    }
  }
}

/** Forgets refused calls that are older than `keepDays` days. It stops early when the signal aborts. */
export async function deleteOldRefusals({ db, clock, keepDays }: { db: Db; clock: Clock; keepDays: number }, signal: AbortSignal): Promise<void> {
  const before = new Date(clock.nowMs() - keepDays * dayMs)
  for (let count = deleteBatch; count === deleteBatch && !signal.aborted; ) count = await db.exec(deleteOldRefusedCalls, before, deleteBatch)
}

type Place = readonly [hour: Date, keyId: number, agentId: number, errorName: string, scope: string]

const newest: Place = [new Date('9999-01-01T00:00:00Z'), int4Max, int4Max, '~', '~']

/** Returns the names of the errors with a code. Several errors can share one. */
const namesOf = (code: string): readonly string[] => Object.entries(errorTable).flatMap(([name, entry]) => (entry.code === code ? [name] : []))

const cursorOf = ({ hour, keyId, agentId, errorName, scope }: RefusedRow): string => `${hour.getTime()}.${keyId}.${agentId}.${errorName}.${scope}`

function placeOf(cursor: string): Place {
  const [, hour, keyId, agentId, errorName = '', scope = ''] = cursorShape.exec(cursor) ?? []
  if (hour === undefined || Number(keyId) > int4Max || Number(agentId) > int4Max || Number(hour) > newest[0].getTime())
    throw fail('bad_request', { message: 'cursor: is not the next_cursor of a page.' })
  return [new Date(Number(hour)), Number(keyId), Number(agentId), errorName, scope]
}
