/**
 * Requests for more budget. An agent, a key or a person asks, and somebody who may raise the budget or cap grants an increase with an end, or refuses.
 * Decisions 0856 to 0858 give the reasons.
 */
import type { Db, Tx } from '../../../platform/db/db.ts'
import type { ControlLog } from '../../../platform/db/db-control-log.ts'
import { fail } from '../../../platform/errors.ts'
import type { Principal } from '../../../platform/security/principal.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import { inrFromUinr } from '../../../platform/values/money.ts'
import { emit, eventId } from '../../webhooks/events/events.ts'
import { type Budgets, capChanged } from '../budgets/budgets.ts'
import {
  countRequests,
  decideRequest,
  deleteOldRequests,
  expireRequest,
  findRequest,
  insertRequest,
  listRequests,
  lockAsking,
  lockOpenRequest,
  type RequestRow,
} from './budget-request-queries.ts'
import { Increases } from './increases.ts'
import { type AskedFor, RequestSubjects, type SubjectDeps, type SubjectParams, subjectText } from './request-subjects.ts'

/** The most open requests of an organisation. */
const openMax = 200
/** The most open requests of one asker: a family of agents, a key or a person. The others can then ask too. */
const askerOpenMax = 20
/** The most requests of an organisation, and of one asker, in 24 hours. */
const dayMax = 1_000
const askerDayMax = 10
const dayMs = 24 * 3600_000
/** An open request of a budget without an end, or of a run, expires after so many days. Each request is deleted so many days after its end. */
const openDays = 30
const keepDays = 30
const deleteBatch = 500
const newest = 2n ** 63n - 1n

export interface BudgetRequestsDeps extends Omit<SubjectDeps, 'budgets'> {
  readonly db: Db
  readonly ids: Ids
  readonly controlLog: ControlLog
  readonly budgets: Budgets
  /** The time of the database's clock in Unix milliseconds. */
  readonly nowMs: () => number
}

/** What is asked: rupees, or calls of a run. */
export interface Amount {
  readonly uinr: bigint | null
  readonly calls: bigint | null
}

export interface AskParams extends SubjectParams {
  readonly amount: Amount
  readonly reason: string
}

export interface Decision {
  readonly isGranted: boolean
  /** Null: what is asked. */
  readonly amount: Amount
  /** Null: the end of the period, or that of the increase that runs, or 30 days. */
  readonly untilMs: number | null
}

export interface RequestFilter {
  readonly isOpen: boolean
  readonly runId: string | null
  readonly before: bigint | null
}

/** A request as one caller sees it. */
export interface SeenRequest extends RequestRow {
  /** True when this caller can grant or refuse it now. */
  readonly mayDecide: boolean
}

/** The requests of organisations. */
export class BudgetRequests {
  readonly #deps: BudgetRequestsDeps
  readonly #subjects: RequestSubjects
  readonly #increases: Increases

  constructor(deps: BudgetRequestsDeps) {
    this.#deps = deps
    this.#subjects = new RequestSubjects(deps)
    this.#increases = new Increases(deps)
  }

  /** Makes a request. Throws `not_found` for a budget or run that does not bind the caller, `budget_request_open`, and `cap` for too many requests. */
  async ask(principal: Principal, { amount, reason, ...params }: AskParams): Promise<SeenRequest> {
    const subject = await this.#subjects.find(principal, params, amount.calls !== null)
    const { db, nowMs } = this.#deps
    const at = nowMs()
    const expiresAtMs = Math.min(subject.endsAtMs ?? Number.POSITIVE_INFINITY, at + openDays * dayMs)
    const id = await db.tx(async tx => {
      const { orgId } = principal
      await tx.one(lockAsking, orgId)
      await tx.exec(expireRequest, orgId, subjectText(subject), new Date(at))
      await this.#checkBounds(tx, principal, at)
      const asker = askerOf(principal)
      const made = await tx.maybe(
        insertRequest,
        ...([orgId, subjectText(subject), subject.scope, subject.targetId, subject.period, subject.runOwner, subject.runId] as const),
        ...([amount.uinr, amount.calls, reason, asker.keyId, asker.agentId, asker.userId, new Date(at), new Date(expiresAtMs)] as const),
      )
      if (made === null) throw fail('budget_request_open')
      await this.#emit(tx, orgId, 'budget.requested', at, {
        ...subjectData(made.id, subject),
        ...amountData(amount),
        expires_at: new Date(expiresAtMs).toISOString(),
      })
      return made.id
    })
    return this.#seen(principal, await this.#find(principal.orgId, id))
  }

  /** Returns requests that the caller may see, the newest first. */
  async list(principal: Principal, { isOpen, runId, before }: RequestFilter, limit: number): Promise<{ rows: SeenRequest[]; nextBefore: bigint | null }> {
    const { db, nowMs } = this.#deps
    const { agentId, keyId, userId } = viewerOf(principal)
    const rows = await db.many(listRequests, principal.orgId, before ?? newest, limit + 1, isOpen, new Date(nowMs()), agentId, keyId, userId, runId)
    const shown: SeenRequest[] = []
    for (const row of rows.slice(0, limit)) shown.push(await this.#seen(principal, row))
    return { rows: shown, nextBefore: rows.length > limit ? (shown.at(-1)?.id ?? null) : null }
  }

  /** Grants an increase, or refuses. Throws `not_found`, `forbidden`, `bad_request`, and `budget_request_decided`. */
  async decide(principal: Principal & { readonly kind: 'session' }, id: bigint, decision: Decision): Promise<SeenRequest> {
    const { orgId, userId } = principal
    const row = await this.#find(orgId, id)
    const refusal = await this.#subjects.refusalOfDeciding(principal, row)
    if (refusal !== null) throw refusal
    const { controlLog, nowMs } = this.#deps
    const amount = grantedOf(row, decision)
    const scopeId = decision.isGranted && row.scope === 'run' ? await this.#subjects.prepareRun(principal, row) : row.targetId
    const at = nowMs()
    await controlLog.change(async tx => {
      if ((await tx.maybe(lockOpenRequest, orgId, id, new Date(at))) === null) throw fail('budget_request_decided')
      const granted = decision.isGranted ? await this.#increases.grant(tx, orgId, { ...row, scopeId }, amount, decision.untilMs) : null
      const until = granted === null ? null : new Date(granted.untilMs)
      const state = decision.isGranted ? 'granted' : 'refused'
      await tx.exec(
        decideRequest,
        orgId,
        id,
        state,
        new Date(at),
        userId,
        decision.isGranted ? amount.uinr : null,
        decision.isGranted ? amount.calls : null,
        until,
      )
      await this.#emit(tx, orgId, 'budget.decided', at, {
        ...subjectData(id, row),
        decision: state,
        ...amountData(decision.isGranted ? amount : { uinr: null, calls: null }),
        until: until?.toISOString() ?? null,
      })
      return { value: undefined, news: granted === null ? [] : [{ kind: capChanged, ref: granted.ref }] }
    })
    return this.#seen(principal, await this.#find(orgId, id))
  }

  async #find(orgId: number, id: bigint): Promise<RequestRow> {
    const row = await this.#deps.db.maybe(findRequest, orgId, id)
    if (row === null) throw fail('not_found', { message: 'No request for more budget with this id.' })
    return row
  }

  /** Shows an open request whose time is over as expired. */
  async #seen(principal: Principal, row: RequestRow): Promise<SeenRequest> {
    const isOver = row.state === 'open' && row.expiresAt.getTime() <= this.#deps.nowMs()
    const isOpen = row.state === 'open' && !isOver
    return { ...row, state: isOver ? 'expired' : row.state, mayDecide: isOpen && (await this.#mayDecide(principal, row)) }
  }

  async #mayDecide(principal: Principal, row: RequestRow): Promise<boolean> {
    if (principal.kind !== 'session') return false
    // Owners and admins may decide about each request, so that a list of them asks nothing.
    if (principal.role !== 'member') return true
    return (await this.#subjects.refusalOfDeciding(principal, row).catch(noDecider)) === null
  }

  async #checkBounds(tx: Tx, principal: Principal, at: number): Promise<void> {
    const { agentId, keyId, userId } = askerOf(principal)
    // An agent can make sub-agents, so the whole family has one count.
    const rootId = principal.kind === 'agent' ? (principal.ancestorIds.at(-1) ?? agentId) : null
    const counts = await tx.one(countRequests, principal.orgId, new Date(at), new Date(at - dayMs), rootId, rootId === null ? keyId : null, userId, dayMax)
    if (counts.ofAsker >= askerDayMax)
      throw fail('cap', { message: `At most ${askerDayMax} requests for more budget a day. An agent and its sub-agents count together. Wait for the answers.` })
    if (counts.openOfAsker >= askerOpenMax)
      throw fail('cap', { message: `At most ${askerOpenMax} of your requests for more budget are open. An agent and its sub-agents count together.` })
    if (counts.open >= openMax) throw fail('cap', { message: `At most ${openMax} requests for more budget of an organisation are open. Decide some first.` })
    if (counts.ofOrg >= dayMax) throw fail('cap', { message: `At most ${dayMax} requests for more budget of an organisation are made in a day.` })
  }

  async #emit<T extends 'budget.requested' | 'budget.decided'>(tx: Tx, orgId: number, type: T, atMs: number, data: Parameters<typeof emit<T>>[1]['data']) {
    await emit(tx, { id: eventId(this.#deps.ids, atMs), orgId, type, atMs, data })
  }
}

const noDecider = (error: unknown): unknown => error

/** Deletes requests 30 days after their end. It stops early when the signal aborts. */
export async function sweepRequests({ db, nowMs }: Pick<BudgetRequestsDeps, 'db' | 'nowMs'>, signal: AbortSignal): Promise<void> {
  const before = new Date(nowMs() - keepDays * dayMs)
  for (let count = deleteBatch; count === deleteBatch && !signal.aborted; ) count = await db.exec(deleteOldRequests, before, deleteBatch)
}

interface Asker {
  readonly agentId: number | null
  readonly keyId: number | null
  readonly userId: number | null
}

function askerOf(principal: Principal): Asker {
  if (principal.kind === 'session') return { agentId: null, keyId: null, userId: principal.userId }
  return { agentId: principal.kind === 'agent' ? principal.agentId : null, keyId: principal.keyId, userId: principal.userId }
}

/** Returns what limits the requests that a caller sees. */
function viewerOf(principal: Principal): Asker {
  if (principal.kind === 'agent') return { agentId: principal.agentId, keyId: null, userId: null }
  if (principal.kind === 'key') return { agentId: null, keyId: principal.keyId, userId: null }
  return { agentId: null, keyId: null, userId: principal.role === 'member' ? principal.userId : null }
}

/** Returns what is granted: what is asked, unless the decision says more or less of the same. Throws `bad_request`. */
function grantedOf(row: RequestRow, { isGranted, amount }: Decision): Amount {
  if (!isGranted) return { uinr: null, calls: null }
  if ((amount.uinr !== null && row.amountUinr === null) || (amount.calls !== null && row.calls === null))
    throw fail('bad_request', { message: row.calls === null ? 'This request asks for rupees: send amount_inr.' : 'This request asks for calls: send calls.' })
  return { uinr: row.amountUinr === null ? null : (amount.uinr ?? row.amountUinr), calls: row.calls === null ? null : (amount.calls ?? row.calls) }
}

function subjectData(id: bigint, { scope, targetId, period, runOwner, runId }: AskedFor) {
  return {
    request_id: Number(id),
    scope,
    scope_id: scope === 'run' ? null : targetId,
    period,
    run_id: runId,
    agent_id: runOwner === 'agent' ? Number(targetId) : null,
    key_id: runOwner === 'key' ? Number(targetId) : null,
  }
}

const amountData = ({ uinr, calls }: Amount) => ({
  amount_inr: uinr === null ? null : inrFromUinr(uinr),
  calls: calls === null ? null : Number(calls),
})
