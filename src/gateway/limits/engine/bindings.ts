/** Finds the counters that bind a caller. They are found once for each caller and period, and then reused until a cap or a period changes. */
import { LRUCache } from 'lru-cache'
import type { BearerPrincipal } from '../../../platform/security/principal.ts'
import { endOfIstDayMs, endOfIstMinuteMs, endOfIstMonthMs, istMonth } from '../../../platform/values/ist-time.ts'
import type { BudgetCache, BudgetEntry, PeriodCap } from '../budgets/budget-cache.ts'
import type { PeriodWindow } from '../budgets/periods/period.ts'
import { type BudgetCalendar, defaultZones } from '../budgets/periods/zones.ts'
import type { Charge, PeriodRef } from '../journal/journal-records.ts'
import type { AdmissionRequest, RunHold } from './admission.ts'
import type { Counter, CounterTable, Scope, ScopeRef } from './counters/counter-state.ts'
import { areCapsOf, type RunningCap, runningCapsOf } from './counters/running.ts'
import { areTokenCapsOf, type TokenCap, tokenCapsOf } from './counters/token-rates.ts'
import { areSameRates, type ToolRate, toolRatesOf } from './counters/tool-rates.ts'

const bindingsMax = 20_000
/** The id of the scope that counts the free calls of a founder. */
export const trialScopeId = 'trial'

/** The cap of free calls a day, which all trial keys of a founder's organisations share. */
export interface TrialCap {
  /** A number for the founder: the negative id of a person, or the id of an organisation that is its own founder. */
  readonly founder: number
  readonly callsMost: number
}

/** The counters of one caller. */
export interface Binding {
  readonly version: number
  readonly dailyLimit: number | null
  /** The limits of calls of tools. Their counters are the first ones. Empty for a call of a model. */
  readonly toolRates: readonly ToolRate[]
  readonly running: readonly RunningCap[]
  /** The limits of tokens a minute. Their counters are before those of concurrent calls. */
  readonly tokens: readonly TokenCap[]
  /** The cap of the whole organisation. Its counter is the last one. Null when there is none. */
  readonly orgRunning: number | null
  /** The run of the call, when it has caps. */
  readonly run: RunHold | null
  /** True for a call that takes no unit of its run. */
  readonly isRunPart: boolean
  /** The end of the IST day or month, of a period of a budget, or of the minute of a limit of tokens, in Unix milliseconds. */
  readonly validUntilMs: number
  readonly entries: readonly BudgetEntry[]
  /**
   * The capped counters in the order in which they refuse: the limits of calls of tools or the daily limit, the free calls of a trial, the caps of the
   * run, the budgets from the narrowest to the widest, the prepaid balance, tokens a minute, then concurrent calls. These come last because waiting helps
   * there.
   */
  readonly counters: readonly Counter[]
  /** The counters of amounts that do not bind the call and that its reply shows. Absent when all bind it. */
  readonly shown?: readonly Counter[]
  readonly charge: Charge
}

/** Returns the scopes of a call, the narrowest first: agent and its ancestors, key, workspace, member, team, organisation. */
export function scopesOf(request: Pick<AdmissionRequest, 'principal' | 'agentId' | 'agentAncestorIds' | 'teamId'>): ScopeRef[] {
  const { principal } = request
  const refs: ScopeRef[] = []
  const put = (scope: Scope, id: number | null | undefined): void => {
    if (id !== null && id !== undefined) refs.push({ orgId: principal.orgId, scope, scopeId: String(id) })
  }
  put('agent', request.agentId)
  for (const id of request.agentAncestorIds) put('agent', id)
  put('key', principal.keyId)
  put('workspace', principal.workspaceId)
  put('member', principal.userId)
  put('team', request.teamId)
  put('org', principal.orgId)
  return refs
}

/** The cached bindings of callers. */
export class Bindings {
  readonly #bindings = new LRUCache<string, Binding>({ max: bindingsMax })
  /**
   * The bindings of callers without agent, team, prepaid balance and free calls, so that their calls write no key. A principal lives as long as its
   * key is cached.
   */
  readonly #plain = new WeakMap<BearerPrincipal, Binding>()
  readonly #budgets: BudgetCache
  readonly #counters: CounterTable
  readonly #calendar: BudgetCalendar
  /** Increases when any binding may be out of date. */
  version = 0

  constructor(budgets: BudgetCache, counters: CounterTable, calendar: BudgetCalendar) {
    this.#budgets = budgets
    this.#counters = counters
    this.#calendar = calendar
  }

  /** Returns the caller's binding when it is cached and fresh. */
  peek(request: AdmissionRequest, nowMs: number, monotonicMs: number): Binding | null {
    const binding = isPlain(request) ? (this.#plain.get(request.principal) ?? this.#remembered(request)) : this.#bindings.get(callerKey(request))
    if (binding === undefined || binding.version !== this.version || nowMs >= binding.validUntilMs) return null
    if (binding.dailyLimit !== dailyLimitOf(request) || binding.run !== (request.run ?? null)) return null
    if (binding.isRunPart !== (request.isRunPart === true)) return null
    if (!areCapsOf(binding.running, request.policies) || !areTokenCapsOf(binding.tokens, request)) return null
    if (request.isTool === true && !areSameRates(binding.toolRates, toolRatesOf(request.principal.orgId, request.policies))) return null
    return this.#budgets.areFresh(binding.entries, monotonicMs) ? binding : null
  }

  /** Returns the binding that another principal object of the same key has left. */
  #remembered(request: AdmissionRequest): Binding | undefined {
    const binding = this.#bindings.get(callerKey(request))
    if (binding !== undefined) this.#plain.set(request.principal, binding)
    return binding
  }

  /**
   * Finds the binding. It asks the database for budgets that are not cached. With `remembers` false, later calls of the caller do not get this binding: one
   * that leaves out a cap must not bind them.
   */
  async load(request: AdmissionRequest, nowMs: number, orgRunning: number | null, trial: TrialCap | null, remembers = true): Promise<Binding> {
    const refs = scopesOf(request)
    const entries = await this.#budgets.load(refs)
    const { principal } = request
    const dailyLimit = dailyLimitOf(request)
    const toolRates = request.isTool === true ? toolRatesOf(principal.orgId, request.policies) : []
    const counters: Counter[] = toolRates.map(({ ref, metric, limit }) => this.#counters.get(ref, metric, nowMs, BigInt(limit)))
    if (dailyLimit !== null) counters.push(this.#limited({ orgId: principal.orgId, scope: 'key', scopeId: String(principal.keyId) }, dailyLimit, nowMs))
    // No organisation has a negative id, so this counter belongs to no organisation but to a person.
    if (trial !== null) counters.push(this.#limited({ orgId: trial.founder, scope: 'org', scopeId: trialScopeId }, trial.callsMost, nowMs))
    // A stored reply costs nothing, so no amount binds it.
    const amounts: Counter[] = request.isCached === true ? [] : counters
    const { run = null } = request
    const isRunPart = request.isRunPart === true
    if (run !== null)
      for (const counter of runCountersOf(this.#counters, principal.orgId, run, nowMs, isRunPart))
        (counter.metric === 'run_calls' ? counters : amounts).push(counter)
    const zones = entries.find(({ ref }) => ref.scope === 'org')?.zones ?? defaultZones
    const periods: PeriodRef[] = []
    const isByMinute = toolRates.some(({ metric }) => metric === 'rpm')
    let endsAtMs = isByMinute ? endOfIstMinuteMs(nowMs) : Math.min(endOfIstDayMs(nowMs), endOfIstMonthMs(nowMs))
    for (const entry of entries) {
      for (const cap of entry.caps) {
        const window = this.#calendar.windowAt(zones, cap.period, nowMs)
        const counter = this.#budgeted(entry.ref, cap, window, nowMs)
        amounts.push(counter)
        if (counter.metric === 'budget') periods.push([entry.ref.scope, entry.ref.scopeId, window.name, cap.period === 'ever' ? null : window.endsAtMs])
        if (window.endsAtMs < endsAtMs) endsAtMs = window.endsAtMs
      }
    }
    const prepaid = isPrepaid(request)
    if (prepaid) counters.push(this.#counters.get(orgRef(principal.orgId), 'prepaid', nowMs, 0n))
    const tokens = tokenCapsOf(principal.orgId, request)
    for (const { ref, cap } of tokens) counters.push(this.#counters.get(ref, 'tpm', nowMs, BigInt(cap)))
    if (tokens.length > 0) endsAtMs = Math.min(endsAtMs, endOfIstMinuteMs(nowMs))
    const running = runningCapsOf(principal.orgId, request.policies)
    for (const { ref, cap } of running) counters.push(this.#counters.get(ref, 'running', nowMs, BigInt(cap)))
    if (orgRunning !== null) counters.push(this.#counters.get(orgRef(principal.orgId), 'running', nowMs, BigInt(orgRunning)))
    // A call after the end of an increase must give back what this process has leased of it.
    for (const { extraUntilMs } of counters) if (extraUntilMs < endsAtMs && extraUntilMs > nowMs) endsAtMs = extraUntilMs
    const binding: Binding = {
      version: this.version,
      dailyLimit,
      toolRates,
      running,
      tokens,
      orgRunning,
      run,
      isRunPart,
      validUntilMs: endsAtMs,
      entries,
      counters,
      ...(amounts === counters ? {} : { shown: amounts }),
      charge: {
        orgId: principal.orgId,
        month: istMonth(nowMs),
        monthEndsAtMs: endOfIstMonthMs(nowMs),
        scopes: refs.map(ref => [ref.scope, ref.scopeId] as const),
        ...(periods.length > 0 ? { periods } : {}),
        ...(prepaid ? { prepaid } : {}),
      },
    }
    if (remembers) this.#bindings.set(callerKey(request), binding)
    if (remembers && isPlain(request)) this.#plain.set(principal, binding)
    return binding
  }

  /** Returns the daily counter. Its `cap` is the key's limit, and the engine updates it in the database. */
  #limited(ref: ScopeRef, limit: number, nowMs: number): Counter {
    return this.#counters.get(ref, 'daily', nowMs, BigInt(limit))
  }

  /** Returns the counter of a budget. A monthly budget in India's time zone has the counter that counts the month of the scope in any case. */
  #budgeted(ref: ScopeRef, { capUinr, strict }: PeriodCap, window: PeriodWindow, nowMs: number): Counter {
    const isMonth = window.name === istMonth(nowMs)
    const counter = isMonth ? this.#counters.get(ref, 'spend', nowMs, capUinr) : this.#counters.ofBudget(ref, window, capUinr)
    if (counter.cap !== capUinr || counter.strict !== strict) counter.refusal = null
    counter.cap = capUinr
    counter.strict = strict
    return counter
  }
}

/** Returns the daily limit that the call counts in. Null when there is none. */
const dailyLimitOf = ({ principal, isTool }: AdmissionRequest): number | null => (isTool === true ? null : principal.limits.dailyLimit)

const orgRef = (orgId: number): ScopeRef => ({ orgId, scope: 'org', scopeId: String(orgId) })

/** Returns the counters of the caps that the run has: its calls, then its value. A part of a call takes no unit of the calls. */
export function runCountersOf(table: CounterTable, orgId: number, { number, calls, spend }: RunHold, nowMs: number, isPart = false): Counter[] {
  const counters: Counter[] = []
  if (calls.cap !== null && !isPart) counters.push(table.ofRun(orgId, number, 'run_calls', calls, nowMs))
  if (spend.cap !== null) counters.push(table.ofRun(orgId, number, 'run_spend', spend, nowMs))
  return counters
}

const isPlain = (request: AdmissionRequest): boolean =>
  request.agentId === null &&
  (request.run ?? null) === null &&
  request.agentAncestorIds.length === 0 &&
  (request.teamId ?? null) === null &&
  !isPrepaid(request) &&
  request.isFree !== true &&
  request.isTool !== true &&
  request.isCached !== true

const isPrepaid = ({ debitUinr }: AdmissionRequest): boolean => debitUinr !== undefined && debitUinr !== null

function callerKey(request: AdmissionRequest): string {
  const { principal, agentId, agentAncestorIds } = request
  const ancestors = agentAncestorIds.length === 0 ? '' : agentAncestorIds.join('.')
  return `${principal.keyId}|${agentId ?? ''}|${ancestors}|${principal.workspaceId ?? ''}|${principal.userId ?? ''}|${request.teamId ?? ''}${isPrepaid(request) ? '|prepaid' : ''}${request.isFree === true ? '|free' : ''}${request.isTool === true ? '|tool' : ''}${request.isCached === true ? '|cached' : ''}${request.run ? `|run${request.run.number}${request.isRunPart === true ? 'part' : ''}` : ''}`
}
