import type { Clock } from '../../platform/clock.ts'
import type { Db, Queryable, Tx } from '../../platform/db/db.ts'
import { fail } from '../../platform/errors.ts'
import type { Principal } from '../../platform/security/principal.ts'
import {
  deleteOldLines,
  endLine,
  firstToolAct,
  insertLine,
  type LineRow,
  listToolActs,
  type ScannedRow,
  scanInstallationLines,
  scanLines,
  scanStep,
} from './queries.ts'

export interface AuditDeps {
  readonly db: Db
  readonly clock: Clock
  /** The setting AUDIT_KEEP_DAYS. */
  readonly keepDays: number
}

/** An act of management. It contains ids. It never contains a name that a user typed, and never a secret. */
export interface Act {
  readonly orgId: number | null
  readonly actor: Principal | 'operator' | 'system'
  /** Name of the endpoint row or command. */
  readonly act: string
  /** The objects of the act, as `key=12` pairs. */
  readonly target: string | null
  readonly sourceIp: string | null
  readonly requestId: string | null
}

/** Filters of a list of lines. A filter that is null or absent has no effect. */
export interface AuditFilter {
  /** Only lines older than the one with this id. */
  readonly before?: bigint | null
  readonly actorKind?: LineRow['actorKind'] | null
  readonly actorId?: string | null
  readonly act?: string | null
  /** Only lines at or after this instant. */
  readonly from?: Date | null
  /** Only lines before this instant. */
  readonly to?: Date | null
}

/** A line in the shape of the API. */
export interface AuditEntry {
  readonly id: number
  readonly at: string
  readonly actor: { readonly kind: LineRow['actorKind']; readonly id: number | null; readonly name?: string }
  readonly act: string
  readonly target: string | null
  readonly source_ip: string | null
  readonly request_id: string | null
  /** 'ok' or an error code. Null when the process ended before the act did. */
  readonly outcome: string | null
}

/** Maximum number of lines that one page with filters looks at. */
export const auditScanMax = 20_000
/** Steps of the scan for a page without filters, and for the first lines of a page with filters. They have more lines than a page. */
const firstSteps = 3
const dayMs = 24 * 3600 * 1000
/** Maximum number of lines that one statement deletes. It is also the maximum number of statements in one sweep. */
const sweepBatch = 5_000
const sweepRoundsMax = 200

/** Interval of sweeps for old lines. */
export const auditSweepMs = 3600 * 1000

/** The audit trail: who did what to what, from where, and when. */
export class AuditTrail {
  readonly #deps: AuditDeps
  constructor(deps: AuditDeps) {
    this.#deps = deps
  }

  /**
   * Writes the line of an act that is about to begin, and returns its id for `end`. Throws `database_unavailable` when the line cannot be written.
   * The act must not happen then.
   */
  async begin(act: Act): Promise<bigint> {
    try {
      return await this.#insert(act, null)
    } catch (error) {
      throw fail('database_unavailable', { cause: error, retryAfterSeconds: 2 })
    }
  }

  /** Completes a line with 'ok' or an error code. It adds the target and the organisation if they became known only during the act. */
  async end(line: bigint, outcome: string, target: string | null = null, orgId: number | null = null): Promise<void> {
    await this.#deps.db.exec(endLine, line, outcome, target, orgId)
  }

  /** Writes the line of an act that has already happened, such as a sweep, a sign-in or a refusal. */
  async record(act: Act, outcome: string): Promise<void> {
    await this.#insert(act, outcome)
  }

  /** Writes the line in the transaction of the act, so that the line exists if, and only if, the transaction commits. */
  async recordIn(tx: Tx, act: Act, outcome: string): Promise<void> {
    await this.#insert(act, outcome, tx)
  }

  /**
   * Returns lines of an organisation, newest first. When `orgId` is null, returns the lines of the installation. `next_before` is the cursor of the
   * next page. A page with filters looks at `auditScanMax` lines, so it may be short, or empty, before the last page.
   */
  async list(orgId: number | null, filter: AuditFilter, limit: number): Promise<{ entries: AuditEntry[]; next_before: number | null }> {
    const entries: AuditEntry[] = []
    let before = filter.before ?? null
    for (const steps of [firstSteps, auditScanMax / scanStep - firstSteps]) {
      const rows = await this.#scan(orgId, { ...filter, before }, limit - entries.length + 1, steps)
      for (const row of rows) {
        if (row.id === null) continue
        if (entries.length === limit) return { entries, next_before: entries.at(-1)?.id ?? null }
        entries.push(entryOf(row))
      }
      const [scan] = rows
      if (scan === undefined || scan.isEnd) return { entries, next_before: null }
      before = scan.endId
    }
    return { entries, next_before: Number(before) }
  }

  #scan(orgId: number | null, filter: AuditFilter, limit: number, steps: number): Promise<ScannedRow[]> {
    const { before = null, actorKind = null, actorId = null, act = null, from = null, to = null } = filter
    const filters = [before, actorKind, actorId, act, from, to] as const
    const { db } = this.#deps
    return orgId === null ? db.many(scanInstallationLines, ...filters, limit, steps) : db.many(scanLines, orgId, ...filters, limit, steps)
  }

  /** The lines about definitions of tools, for the documents of auditors. Both functions read an index. */
  get toolActs() {
    const { db } = this.#deps
    return {
      firstAt: async (orgId: number, from: Date): Promise<Date | null> => (await db.one(firstToolAct, orgId, from)).at,
      page: (orgId: number, from: Date, until: Date, after: { readonly at: Date; readonly id: bigint }, limit: number) =>
        db.many(listToolActs, orgId, from, until, after.at, after.id, limit),
    }
  }

  /** Deletes lines older than AUDIT_KEEP_DAYS and returns their number. */
  async sweep(): Promise<number> {
    const before = new Date(this.#deps.clock.nowMs() - this.#deps.keepDays * dayMs)
    let count = 0
    for (let round = 0; round < sweepRoundsMax; round++) {
      const deleted = await this.#deps.db.exec(deleteOldLines, before, sweepBatch)
      count += deleted
      if (deleted < sweepBatch) break
    }
    return count
  }

  async #insert(act: Act, outcome: string | null, db: Queryable = this.#deps.db): Promise<bigint> {
    const [kind, id] = actorOf(act.actor)
    const at = new Date(this.#deps.clock.nowMs())
    return (await db.one(insertLine, act.orgId, at, kind, id, act.act, act.target, act.sourceIp, act.requestId, outcome)).id
  }
}

function actorOf(actor: Act['actor']): readonly [kind: LineRow['actorKind'], id: string | null] {
  if (typeof actor === 'string') return [actor, null]
  switch (actor.kind) {
    case 'session':
      return ['user', String(actor.userId)]
    case 'key':
      return ['key', String(actor.keyId)]
    case 'agent':
      return ['agent', String(actor.agentId)]
  }
}

function entryOf(row: LineRow): AuditEntry {
  return {
    id: Number(row.id),
    at: row.at.toISOString(),
    actor: { kind: row.actorKind, id: row.actorId === null ? null : Number(row.actorId), ...(row.actorName === null ? {} : { name: row.actorName }) },
    act: row.act,
    target: row.target,
    source_ip: row.sourceIp,
    request_id: row.requestId,
    outcome: row.outcome,
  }
}
