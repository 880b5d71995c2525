/** Lists the runs of an organisation, and returns one run. */
import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import { fail } from '../../../platform/errors.ts'
import type { Flushable } from '../../../platform/flushable.ts'
import type { Principal } from '../../../platform/security/principal.ts'
import { istDay, startOfIstDayMs } from '../../../platform/values/ist-time.ts'
import { isRunId } from '../../wire/runs/run-id.ts'
import { isTagKey, isTagValue } from '../../wire/runs/run-tags.ts'
import { checkedSpan, daysIn } from '../reports/usage-span.ts'
import type { RunRef } from './ended-runs.ts'
import {
  deleteOldRunDays,
  deleteOldRuns,
  findFamilyTop,
  findRunOfOwner,
  findRuns,
  listRuns,
  listRunsOfOwner,
  listRunsOfTag,
  type RunRow,
  type RunSums,
  sumsByAgent,
  sumsByModel,
  sumsBySubagent,
  sumsByTag,
  type TagRow,
} from './run-queries.ts'
import type { RunOwnerKind } from './run-sums.ts'

/** The most rows in each list of one run: as many as it has parts. */
const partRowsMax = 1_000
/** The most days, values and runs of a report by tag. */
const tagDaysMax = 31
const tagValuesMax = 200
const tagRunsMax = 500_000
/** The runs of one delete. Each has up to a few hundred parts. */
const deleteBatch = 500
/** The rows of one read of a search, and the most reads of one page. A page may be short, or empty, before the last one. */
const searchRows = 500
const searchReadsMax = 10
const dayMs = 24 * 3600_000
const newestDay = '9999-12-31'
const newestNumber = 2n ** 63n - 1n
const cursorShape = /^(\d{4}-\d{2}-\d{2})\.(\d{1,19})$/

export interface RunsDeps {
  readonly db: Db
  readonly clock: Clock
  /** Writes the records that this process has settled to the database. */
  readonly journal: Flushable
}

/** Who a run belongs to, as a request names it. */
export interface RunOwnerFilter {
  /** The runs of the family of this agent. */
  readonly agentId?: number | undefined
  readonly keyId?: number | undefined
}

export interface RunFilter extends RunOwnerFilter {
  /** The IST day of the last call, or a later one. */
  readonly from?: string | undefined
  /** A tag, as `key=value`. */
  readonly tag?: string | undefined
  readonly cursor?: string | undefined
}

export interface RunPage {
  readonly rows: readonly RunRow[]
  /** Null after the last page. */
  readonly nextCursor: string | null
}

/** A run with the sums of its parts. */
export interface WholeRun {
  readonly run: RunRow
  readonly byModel: readonly (RunSums & { readonly model: string })[]
  readonly byAgent: readonly (RunSums & { readonly agentId: number; readonly agentName: string | null })[]
  /** Null is the main agent. Empty when no client names a sub-agent. */
  readonly bySubagent: readonly (RunSums & { readonly name: string | null })[]
}

/** The runs of a span by the value of a tag. */
export interface TagReport {
  readonly from: string
  readonly to: string
  readonly rows: readonly TagRow[]
}

interface Owner {
  readonly kind: RunOwnerKind
  readonly id: number
}

/** The runs of organisations. */
export class Runs {
  readonly #deps: RunsDeps

  constructor(deps: RunsDeps) {
    this.#deps = deps
  }

  /** The present time in Unix milliseconds, which decides whether a run is idle. */
  nowMs(): number {
    return this.#deps.clock.nowMs()
  }

  /**
   * Returns a page of runs. The runs of the latest days come first; those of one day come in the order in which they began, the newest first. A run that
   * gets a call on a later day while somebody reads the pages moves to the beginning. With `isWanted`, only such runs are returned, and a page looks at a
   * bounded number of runs. Throws `bad_request`.
   */
  async list(orgId: number, { from = '1970-01-01', cursor, tag, ...filter }: RunFilter, limit: number, isWanted?: (run: RunRow) => boolean): Promise<RunPage> {
    if (startOfIstDayMs(from) === null) throw fail('bad_request', { message: `"${from.slice(0, 40)}" is no calendar day; write YYYY-MM-DD.` })
    const place = placeOf(cursor)
    const tagged = tag === undefined ? null : tagOf(tag)
    const owner = await this.#ownerOf(orgId, filter)
    const { db, journal } = this.#deps
    await journal.flushNow()
    const read = (at: Place, count: number): Promise<RunRow[]> => {
      const part = [orgId, from, at.day, at.number, count] as const
      if (tagged !== null) return db.many(listRunsOfTag, ...part, owner?.kind ?? null, owner?.id ?? null, tagged)
      return owner === null ? db.many(listRuns, ...part) : db.many(listRunsOfOwner, ...part, owner.kind, owner.id)
    }
    if (isWanted !== undefined) return search(read, place, limit, isWanted)
    const rows = await read(place, limit + 1)
    const shown = rows.slice(0, limit)
    const last = shown.at(-1)
    return { rows: shown, nextCursor: rows.length > limit && last !== undefined ? cursorOf(last) : null }
  }

  /**
   * Returns the run with this id: the one of the owner that the filter names, otherwise the caller's own, otherwise the only one in the organisation.
   * Throws `not_found`, and `bad_request` when several owners have a run with this id.
   */
  async find(principal: Principal, runId: string, filter: RunOwnerFilter): Promise<WholeRun> {
    const { orgId } = principal
    if (!isRunId(runId)) throw noRun()
    const { db, journal } = this.#deps
    const owner = await this.#ownerOf(orgId, filter)
    await journal.flushNow()
    const run = owner === null ? await this.#ownOrOnly(principal, runId) : await db.maybe(findRunOfOwner, orgId, owner.kind, owner.id, runId)
    if (run === null) throw noRun()
    const [byModel, byAgent, bySubagent] = await Promise.all([
      db.many(sumsByModel, run.number, partRowsMax),
      db.many(sumsByAgent, orgId, run.number, partRowsMax),
      db.many(sumsBySubagent, run.number, partRowsMax),
    ])
    return { run, byModel, byAgent, bySubagent: withMainAgent(run, bySubagent) }
  }

  /**
   * Returns what the runs of a span of IST days used, by the value of a tag. A run counts on the day of its last call. Throws `bad_request` for a span that is
   * too long or has too many runs.
   */
  async byTag(orgId: number, key: string, asked: { readonly from?: string | undefined; readonly to?: string | undefined }): Promise<TagReport> {
    if (!isTagKey(key)) throw fail('bad_request', { message: 'The key of a tag has 1 to 32 small letters, digits and underscores, and begins with a letter.' })
    const { db, clock, journal } = this.#deps
    const to = asked.to ?? istDay(clock.nowMs())
    const from = asked.from ?? istDay((startOfIstDayMs(to) ?? 0) - (tagDaysMax - 1) * dayMs)
    const span = checkedSpan({ from, to })
    if (daysIn(span) > tagDaysMax) throw fail('bad_request', { message: `A report by tag has at most ${tagDaysMax} days, both ends included.` })
    await journal.flushNow()
    const rows = await db.many(sumsByTag, orgId, span.from, span.to, key, tagValuesMax, tagRunsMax + 1)
    const runs = rows.reduce((sum, row) => sum + row.runs, 0n)
    if (runs > BigInt(tagRunsMax)) throw fail('bad_request', { message: `A report by tag reads at most ${tagRunsMax} runs. Ask for fewer days.` })
    return { ...span, rows }
  }

  /**
   * Returns the run that a request to end or change it means. With an owner, the run need not have a row yet, because its first call may still run. Throws
   * `not_found` and `bad_request`.
   */
  async toEnd(principal: Principal, runId: string, filter: RunOwnerFilter): Promise<RunRef & { readonly ownerKind: 'agent' | 'key' }> {
    const { orgId } = principal
    if (!isRunId(runId)) throw noRun()
    const owner = await this.#ownerOf(orgId, filter)
    await this.#deps.journal.flushNow()
    const { kind, id } = owner ?? ownerOfRow(await this.#ownOrOnly(principal, runId))
    if (kind === 'others') throw noRun()
    return { orgId, ownerKind: kind, ownerId: id, runId }
  }

  /** Returns the row of a run. Throws `not_found`. */
  async row({ orgId, ownerKind, ownerId, runId }: RunRef & { readonly ownerKind: 'agent' | 'key' }): Promise<RunRow> {
    const found = await this.#deps.db.maybe(findRunOfOwner, orgId, ownerKind, ownerId, runId)
    if (found === null) throw noRun()
    return found
  }

  async #ownOrOnly(principal: Principal, runId: string): Promise<RunRow | null> {
    const { db } = this.#deps
    const own = ownerOfCaller(principal)
    const found = own === null ? null : await db.maybe(findRunOfOwner, principal.orgId, own.kind, own.id, runId)
    if (found !== null) return found
    const [only, another] = await db.many(findRuns, principal.orgId, runId, 2)
    if (another !== undefined)
      throw fail('bad_request', { message: 'Several agents or keys have a run with this id. Name one of them with agent_id or key_id.' })
    return only ?? null
  }

  /** Returns the owner that the filter names. Null when it names none. */
  async #ownerOf(orgId: number, { agentId, keyId }: RunOwnerFilter): Promise<Owner | null> {
    if (agentId !== undefined && keyId !== undefined) throw fail('bad_request', { message: 'A run belongs to an agent or to a key: send agent_id or key_id.' })
    if (keyId !== undefined) return { kind: 'key', id: keyId }
    if (agentId === undefined) return null
    const top = await this.#deps.db.maybe(findFamilyTop, orgId, agentId)
    // An id of another organisation matches nothing.
    return { kind: 'agent', id: top?.id ?? 0 }
  }
}

/** Deletes runs whose last call is older than the kept events. It stops early when the signal aborts. */
export async function deleteOldRunRows({ db, clock, keepDays }: { db: Db; clock: Clock; keepDays: number }, signal: AbortSignal): Promise<void> {
  const firstKept = istDay(clock.nowMs() - keepDays * dayMs)
  for (const deletion of [deleteOldRuns, deleteOldRunDays])
    for (let count = deleteBatch; count === deleteBatch && !signal.aborted; ) count = await db.exec(deletion, firstKept, deleteBatch)
}

/** Returns the owner of the runs that the caller's calls belong to. A person has none. */
function ownerOfCaller(principal: Principal): Owner | null {
  if (principal.kind === 'session') return null
  return principal.kind === 'key' ? { kind: 'key', id: principal.keyId } : { kind: 'agent', id: principal.ancestorIds.at(-1) ?? principal.agentId }
}

function ownerOfRow(run: RunRow | null): Owner {
  if (run === null) throw noRun()
  return { kind: run.ownerKind, id: run.ownerId }
}

const noRun = () => fail('not_found', { message: 'No run with this id. A run has a row when its first call has ended.' })

/** Returns a tag of a filter as JSON. Throws `bad_request`. */
export function tagOf(text: string): string {
  const at = text.indexOf('=')
  const [key, value] = [text.slice(0, Math.max(at, 0)), text.slice(at + 1)]
  if (!isTagKey(key) || !isTagValue(value)) throw fail('bad_request', { message: 'tag: write a tag as key=value, such as pr=1234.' })
  return JSON.stringify({ [key]: value })
}

/** Adds what is left of a run without its sub-agents. */
function withMainAgent(run: RunRow, subagents: readonly (RunSums & { readonly name: string })[]): WholeRun['bySubagent'] {
  if (subagents.length === 0) return []
  const left = (of: (sums: RunSums) => bigint): bigint => subagents.reduce((rest, each) => rest - of(each), of(run))
  const main = {
    name: null,
    calls: left(({ calls }) => calls),
    errors: left(({ errors }) => errors),
    promptTokens: left(({ promptTokens }) => promptTokens),
    completionTokens: left(({ completionTokens }) => completionTokens),
    cachedTokens: left(({ cachedTokens }) => cachedTokens),
    valueUinr: left(({ valueUinr }) => valueUinr),
    costUinr: left(({ costUinr }) => costUinr),
  }
  return [main, ...subagents]
}

interface Place {
  readonly day: string
  readonly number: bigint
}

const cursorOf = ({ lastDay, number }: Pick<RunRow, 'lastDay' | 'number'>): string => `${lastDay}.${number}`

/** Reads on until a page is full, or until it has looked at its most runs. The next page begins after the last run that it looked at. */
async function search(read: (at: Place, count: number) => Promise<RunRow[]>, from: Place, limit: number, isWanted: (run: RunRow) => boolean): Promise<RunPage> {
  const found: RunRow[] = []
  let at = from
  for (let reads = 0; reads < searchReadsMax; reads++) {
    const rows = await read(at, searchRows)
    for (const row of rows) {
      if (!isWanted(row)) continue
      found.push(row)
      if (found.length === limit) return { rows: found, nextCursor: cursorOf(row) }
    }
    const last = rows.at(-1)
    if (rows.length < searchRows || last === undefined) return { rows: found, nextCursor: null }
    at = { day: last.lastDay, number: last.number }
  }
  return { rows: found, nextCursor: cursorOf({ lastDay: at.day, number: at.number }) }
}

function placeOf(cursor: string | undefined): Place {
  if (cursor === undefined) return { day: newestDay, number: newestNumber }
  const [, day, number] = cursorShape.exec(cursor) ?? []
  if (day === undefined || number === undefined || startOfIstDayMs(day) === null || BigInt(number) > newestNumber)
    throw fail('bad_request', { message: 'cursor: take next_cursor of the page before, or leave it out for the first page.' })
  return { day, number: BigInt(number) }
}
