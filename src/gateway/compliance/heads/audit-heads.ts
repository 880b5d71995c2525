import { createHash } from 'node:crypto'
import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import { fail } from '../../../platform/errors.ts'
import { nextTurn } from '../../../platform/loop/next-turn.ts'
import { endOfIstDayMs, istDay, startOfIstDayMs } from '../../../platform/values/ist-time.ts'
import { canonicalBytes } from '../attestation/attestation.ts'
import type { AttestationKeys } from '../attestation/attestation-keys.ts'
import { iso } from '../window.ts'
import { type AuditHead, type AuditRow, auditHead, type HeadPayload, rowsPageMax } from './audit-head-shape.ts'
import { type ActRow, actRow, callRow, leafOf } from './audit-rows.ts'
import { MerkleRoot } from './merkle-root.ts'
import { findCallsKeptFrom, findLastHead, firstToolCall, type HeadRow, insertHead, listHeads, listToolCalls } from './queries.ts'

/** The lines of the audit trail about tools, from the domain that owns them. */
interface ToolActs {
  /** Returns when the first line was written at or after an instant, or null. */
  firstAt(orgId: number, from: Date): Promise<Date | null>
  /** Returns a page of the lines of a window, by time and id. */
  page(orgId: number, from: Date, until: Date, after: { readonly at: Date; readonly id: bigint }, limit: number): Promise<readonly ActRow[]>
}

export interface AuditHeadsDeps {
  readonly db: Db
  readonly clock: Clock
  readonly keys: Pick<AttestationKeys, 'sign'>
  readonly acts: ToolActs
  /** The setting AUDIT_KEEP_DAYS. */
  readonly auditKeepDays: number
  readonly baseUrl: () => string
  /** Returns a page of the organisations that ever registered an MCP server, by id. */
  orgs(after: number, limit: number): Promise<readonly number[]>
}

/** A page of rows below a head. Rows of days before `callsKeptFrom`, and acts before `actsKeptFrom`, may have been deleted by age. */
interface RowPage {
  readonly rows: readonly AuditRow[]
  readonly nextCursor: string | null
  readonly callsKeptFrom: string | null
  readonly actsKeptFrom: string
}

/** How often ended days are looked for. */
export const headsEveryMs = 3600_000
/** A day is signed this long after its end. Every transaction that began in the day has ended by then. */
const graceMs = 3600_000
const dayMs = 24 * 3600_000
const orgsPage = 500
/** Maximum number of heads that one look makes for one organisation. The next look makes more. */
const headsOfLookMax = 50
const firstId = '00000000-0000-0000-0000-000000000000'

/**
 * Signs one head for each organisation and each ended day with calls of tools or acts about tools. A head has the Merkle roots of the rows of its day and the
 * hash of the head before, so a changed, deleted or added row shows later, and so does a missing head. Decision 0822 gives the reasons.
 */
export class AuditHeads {
  readonly #deps: AuditHeadsDeps
  constructor(deps: AuditHeadsDeps) {
    this.#deps = deps
  }

  /** Makes the heads that are due in all organisations. Returns their number. */
  async makeDue(signal: AbortSignal): Promise<number> {
    let made = 0
    for (let after = 0, isMore = true; isMore; ) {
      const orgs = await this.#deps.orgs(after, orgsPage)
      for (const orgId of orgs) {
        for (let i = 0; i < headsOfLookMax; i++) {
          signal.throwIfAborted()
          if (!(await this.#makeNext(orgId))) break
          made++
        }
      }
      isMore = orgs.length === orgsPage
      after = orgs.at(-1) ?? after
    }
    return made
  }

  /** Returns a page of heads, the oldest first, which begins after a day. Throws `bad_request` for a day that does not exist. */
  async list(orgId: number, after: string | null, limit: number): Promise<{ readonly heads: readonly AuditHead[]; readonly next: string | null }> {
    if (after !== null) windowOf(after)
    const rows = await this.#deps.db.many(listHeads, orgId, after ?? '0001-01-01', limit + 1)
    const heads = rows.slice(0, limit).map(headOf)
    return { heads, next: rows.length > limit ? (heads.at(-1)?.payload.day ?? null) : null }
  }

  /** Returns a page of the rows of a day as the database has them now: calls first, then acts. Throws `bad_request` for an invalid cursor. */
  async rows(orgId: number, day: string, cursor: string | null): Promise<RowPage> {
    const { db, clock, auditKeepDays } = this.#deps
    const window = windowOf(day)
    const after = cursor === null ? { kind: 'call' as const, at: new Date(0), id: firstId } : placeOf(cursor)
    const rows: AuditRow[] = []
    let next: string | null = null
    if (after.kind === 'call') {
      const calls = await db.many(listToolCalls, orgId, window.from, window.until, after.at, after.id, rowsPageMax)
      rows.push(...calls.map(row => callRow(orgId, row)))
      const last = calls.at(-1)
      next = calls.length === rowsPageMax && last !== undefined ? cursorOf('call', last.recordedAt, last.id) : cursorOf('act', new Date(0), '0')
    } else {
      const acts = await this.#deps.acts.page(orgId, window.from, window.until, { at: after.at, id: BigInt(after.id) }, rowsPageMax)
      rows.push(...acts.map(row => actRow(orgId, row)))
      const last = acts.at(-1)
      next = acts.length === rowsPageMax && last !== undefined ? cursorOf('act', last.at, String(last.id)) : null
    }
    const callsKeptFrom = (await db.one(findCallsKeptFrom)).keptFrom
    return { rows, nextCursor: next, callsKeptFrom, actsKeptFrom: iso(clock.nowMs() - auditKeepDays * dayMs) }
  }

  /** Makes the next head of an organisation. Returns false when no ended day is left. */
  async #makeNext(orgId: number): Promise<boolean> {
    const { db, clock, keys, acts, baseUrl } = this.#deps
    const last = await db.maybe(findLastHead, orgId)
    const from = last === null ? new Date(0) : windowOf(last.day).until
    const firsts = [(await db.one(firstToolCall, orgId, from)).at, await acts.firstAt(orgId, from)].flatMap(at => (at === null ? [] : [at.getTime()]))
    if (firsts.length === 0) return false
    const firstMs = Math.min(...firsts)
    if (endOfIstDayMs(firstMs) + graceMs > clock.nowMs()) return false
    const day = istDay(firstMs)
    const payload: HeadPayload = {
      schema: 'brigade.tool-audit-head.v1',
      issuer: baseUrl(),
      org_id: orgId,
      day,
      ...(await this.#rootsOf(orgId, day)),
      previous: last === null ? null : hashOf(last.payload),
      made_at: iso(clock.nowMs()),
    }
    const bytes = canonicalBytes(payload)
    const { ed25519 } = await keys.sign(bytes)
    await db.exec(insertHead, orgId, day, bytes.toString(), ed25519.keyId, ed25519.signature)
    return true
  }

  async #rootsOf(orgId: number, day: string): Promise<Pick<HeadPayload, 'calls' | 'acts'>> {
    const roots = { call: new MerkleRoot(), act: new MerkleRoot() }
    let firstDay: string | null = null
    for (let cursor: string | null = null, isFirst = true; isFirst || cursor !== null; isFirst = false) {
      const page: RowPage = await this.rows(orgId, day, cursor)
      for (const row of page.rows) {
        roots[row.kind].add(leafOf(row))
        const called = row['day']
        if (typeof called === 'string' && (firstDay === null || called < firstDay)) firstDay = called
      }
      cursor = page.nextCursor
      await nextTurn()
    }
    return {
      calls: { count: roots.call.count, root: roots.call.hex(), first_day: firstDay },
      acts: { count: roots.act.count, root: roots.act.hex() },
    }
  }
}

/** Returns the hash by which the next head names a payload. */
export const hashOf = (payload: string | Buffer): string => createHash('sha256').update(payload).digest('hex')

function headOf({ payload, keyId, signature }: HeadRow): AuditHead {
  return auditHead.parse({ payload: JSON.parse(payload), ed25519: { alg: 'EdDSA', key_id: keyId, signature } })
}

function windowOf(day: string): { readonly from: Date; readonly until: Date } {
  const fromMs = startOfIstDayMs(day)
  if (fromMs === null) throw fail('bad_request', { message: 'A day must be an IST day, YYYY-MM-DD.' })
  return { from: new Date(fromMs), until: new Date(fromMs + dayMs) }
}

const cursorOf = (kind: 'call' | 'act', at: Date, id: string): string => Buffer.from(`${kind} ${at.getTime()} ${id}`).toString('base64url')

function placeOf(cursor: string): { readonly kind: 'call' | 'act'; readonly at: Date; readonly id: string } {
  const [, kind, at, id = ''] = /^(call|act) (\d{1,15}) ([0-9a-f-]{1,36})$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? []
  const isId = kind === 'call' ? /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id) : /^\d{1,18}$/.test(id)
  if (!isId) throw fail('bad_request', { message: 'cursor must be the next_cursor of the page before.' })
  return { kind: kind === 'call' ? 'call' : 'act', at: new Date(Number(at)), id }
}
