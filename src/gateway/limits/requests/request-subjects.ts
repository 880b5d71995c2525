/** Finds the budget or run that a request means, and decides who may grant it. */
import { fail } from '../../../platform/errors.ts'
import type { BearerPrincipal, Principal, SessionPrincipal } from '../../../platform/security/principal.ts'
import type { BudgetStatus, Budgets } from '../budgets/budgets.ts'
import type { BudgetPeriod } from '../budgets/periods/period.ts'
import type { RequestScope } from './budget-request-queries.ts'

/** A budget of a period, or a run. */
export interface AskedFor {
  readonly scope: RequestScope
  /** The id of the scope. For a run, the id of the agent or key that it belongs to. */
  readonly targetId: string
  readonly period: BudgetPeriod | null
  readonly runOwner: 'agent' | 'key' | null
  readonly runId: string | null
}

export interface Subject extends AskedFor {
  /** The end of the period in Unix milliseconds. Null: it has none. */
  readonly endsAtMs: number | null
}

export interface SubjectParams {
  readonly scope: RequestScope
  readonly targetId: string | null
  readonly period: BudgetPeriod | null
  readonly runId: string | null
  readonly agentId: number | null
  readonly keyId: number | null
}

/** A run that somebody asks for. */
export interface FoundRun {
  readonly ownerKind: 'agent' | 'key'
  readonly ownerId: number
  readonly isEnded: boolean
  readonly hasCostCap: boolean
  readonly hasCallsCap: boolean
}

/** The runs of organisations. Usage has them. */
export interface RequestedRuns {
  /** Returns the run that the caller means, as for a change of its caps. Throws `not_found` and `bad_request`. */
  find(principal: Principal, runId: string, owner: { readonly agentId?: number; readonly keyId?: number }): Promise<FoundRun>
  /** Makes the counters of the run if it has none, and returns the id of their scope. Throws like a change of its caps. */
  prepare(principal: Principal, run: { readonly ownerKind: 'agent' | 'key'; readonly ownerId: number; readonly runId: string }): Promise<string>
}

export interface SubjectDeps {
  readonly budgets: Pick<Budgets, 'listAll'>
  readonly runs: RequestedRuns
  /** Returns the budgets that bind a credential, the narrowest first. */
  budgetsOf(principal: BearerPrincipal): Promise<BudgetStatus[]>
  /** Throws `not_found` for an owner of another organisation, and `forbidden` unless the person may act on the agent or key. */
  checkOwner(principal: Principal, ownerKind: 'agent' | 'key', ownerId: number): Promise<void>
  /** Resolves with the error for a caller who may not raise the budget, or caps of runs, of the agent or key, otherwise with null. */
  raising(principal: Principal, ownerKind: 'agent' | 'key', ownerId: number, what: 'budget' | 'run'): Promise<Error | null>
}

/** Returns the text that is one for each budget and run of an organisation. */
export const subjectText = ({ scope, targetId, period, runOwner, runId }: AskedFor): string =>
  scope === 'run' ? `run/${runOwner}/${targetId}/${runId}` : `${scope}/${targetId}/${period}`

/** Finds what callers ask for. */
export class RequestSubjects {
  readonly #deps: SubjectDeps

  constructor(deps: SubjectDeps) {
    this.#deps = deps
  }

  /** Returns the budget or run. Throws `not_found`, `bad_request`, `forbidden` and `run_ended`. */
  find(principal: Principal, params: SubjectParams, asksCalls: boolean): Promise<Subject> {
    return params.scope === 'run' ? this.#run(principal, params, asksCalls) : this.#budget(principal, { ...params, scope: params.scope }, asksCalls)
  }

  /** Resolves with the error for a person who may not decide about a request, otherwise with null. */
  async refusalOfDeciding(principal: SessionPrincipal, { scope, runOwner, targetId }: AskedFor): Promise<Error | null> {
    const ownerKind = runOwner ?? scope
    if (ownerKind === 'agent' || ownerKind === 'key') return this.#deps.raising(principal, ownerKind, Number(targetId), scope === 'run' ? 'run' : 'budget')
    if (principal.role !== 'member') return null
    return fail('forbidden', { message: 'Owners and admins of the organisation decide about this budget.' })
  }

  /** Makes sure that a run has counters, and returns the id of their scope. */
  async prepareRun(principal: Principal, { runOwner, targetId, runId }: AskedFor): Promise<string> {
    if (runOwner === null || runId === null) throw new Error('a request for a run without its run')
    return this.#deps.runs.prepare(principal, { ownerKind: runOwner, ownerId: Number(targetId), runId })
  }

  async #run(principal: Principal, { runId, agentId, keyId, targetId, period }: SubjectParams, asksCalls: boolean): Promise<Subject> {
    if (targetId !== null || period !== null) throw fail('bad_request', { message: 'target_id and period belong to budgets. For a run, send run_id.' })
    const named = runId ?? (principal.kind === 'agent' ? (principal.runId ?? null) : null)
    if (named === null) throw fail('bad_request', { message: 'run_id is missing: send the id of the run, as x-br-run-id of a reply says it.' })
    // An agent asks for its own runs only. Their owner is the agent at the top of its family.
    const owner =
      principal.kind === 'agent' ? { agentId: principal.agentId } : { ...(agentId === null ? {} : { agentId }), ...(keyId === null ? {} : { keyId }) }
    const run = await this.#deps.runs.find(principal, named, owner)
    await this.#deps.checkOwner(principal, run.ownerKind, run.ownerId)
    if (run.isEnded) throw fail('run_ended')
    if (asksCalls ? !run.hasCallsCap : !run.hasCostCap)
      throw fail('bad_request', { message: asksCalls ? 'This run has no cap on calls. Send amount_inr.' : 'This run has no cap on cost. Send calls.' })
    return { scope: 'run', targetId: String(run.ownerId), period: null, runOwner: run.ownerKind, runId: named, endsAtMs: null }
  }

  async #budget(
    principal: Principal,
    { scope, targetId, period, runId, agentId, keyId }: SubjectParams & { readonly scope: Exclude<RequestScope, 'run'> },
    asksCalls: boolean,
  ): Promise<Subject> {
    if (runId !== null || agentId !== null || keyId !== null)
      throw fail('bad_request', { message: 'run_id, agent_id and key_id belong to runs. For a budget, send target_id.' })
    if (asksCalls) throw fail('bad_request', { message: 'Budgets are in rupees: send amount_inr.' })
    const bound = (await this.#bindingOf(principal, scope, targetId)).filter(status => period === null || status.period === period)
    const status = bound.find(({ state }) => state === 'blocked') ?? bound[0]
    if (status === undefined) throw fail('not_found', { message: `No budget of this ${scope} binds you. Read your budgets with GET /v1/me/budgets.` })
    return { scope, targetId: status.id, period: status.period, runOwner: null, runId: null, endsAtMs: status.resetsAtMs }
  }

  /** Returns the budgets of a scope that bind the caller, or for which the caller may act. */
  async #bindingOf(principal: Principal, scope: Exclude<RequestScope, 'run'>, targetId: string | null): Promise<readonly BudgetStatus[]> {
    const { budgets, budgetsOf, checkOwner } = this.#deps
    if (principal.kind !== 'session') {
      const own = (await budgetsOf(principal)).filter(status => status.scope === scope && (targetId === null || status.id === targetId))
      if (own.length > 0 || principal.kind === 'agent' || scope !== 'agent' || targetId === null) return own
    }
    const id = targetId ?? this.#ownId(principal, scope)
    if (scope === 'agent' || scope === 'key') await checkOwner(principal, scope, Number(id))
    else if (id !== this.#ownId(principal, scope) && (principal.kind !== 'session' || principal.role === 'member')) return []
    return budgets.listAll(principal.orgId, [{ scope, scopeId: id }])
  }

  #ownId({ orgId, userId }: Principal, scope: Exclude<RequestScope, 'run'>): string {
    if (scope === 'org') return String(orgId)
    if (scope === 'member' && userId !== null) return String(userId)
    throw fail('bad_request', { message: `target_id is missing: send the id of the ${scope}.` })
  }
}
