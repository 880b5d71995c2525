/**
 * The error that a caller gets when a limit or a budget refuses: the scope that refused, its figures, and whether waiting helps. Decision 0023
 * gives the reasons.
 */
import { fail, type GatewayError } from '../../../platform/errors.ts'
import { inrFromUinr, inrTextOf } from '../../../platform/values/money.ts'
import { brHeader } from '../../wire/response-headers.ts'
import { adjectiveOf, periodOfName } from '../budgets/periods/period.ts'
import type { RunHold } from './admission.ts'
import { agentRemainingOf } from './agent-remaining.ts'
import { type Counter, isOfRun, isSpend, type RefusalNote } from './counters/counter-state.ts'
import { isToolRate } from './counters/tool-rates.ts'
import { runCallsRemainingOf, runRemainingOf, runSpentOf } from './run-remaining.ts'

/** The way to more, which the refusal of a cap or budget names. */
export const howToAsk = 'ask for more with POST /v1/me/budget-requests (MCP tool budget_request)'

/** The seconds to wait when only the holds of running calls cause the refusal. */
const heldRetrySeconds = 5

/** The seconds to wait when a budget of all time is spent: only its owner ends that. */
const endlessRetrySeconds = 24 * 3600

/** The seconds to wait for a running call to end. */
const concurrencyRetrySeconds = 1

/** A refusal by a counter. */
export interface Refused {
  readonly counter: Counter
  readonly note: RefusalNote
}

/**
 * Returns the error of a refusal. It is 429 with a retry-after to the end of the period, or of a few seconds when only running calls cause the
 * refusal. `counters` are all counters that bind the call. From them the agent gets its remaining budget, whichever counter refused.
 */
export function refusalError(
  { counter, note }: Refused,
  nowMs: number,
  counters: readonly Counter[] = [],
  run: RunHold | null | undefined = null,
): GatewayError {
  const headers = remainingHeaders(counters)
  if (run && isOfRun(counter.metric)) return runError(counter, note, run, headers)
  if (counter.metric === 'running') return concurrencyError(counter, note, headers)
  if (counter.metric === 'prepaid') return creditError(note, headers)
  if (isSpend(counter.metric)) return budgetError(counter, note, nowMs, headers)
  const endSeconds = endSecondsOf(counter, nowMs)
  const resetsAt = new Date(counter.endsAtMs).toISOString()
  if (isToolRate(counter)) return toolRateError(counter, note, { retryAfterSeconds: endSeconds, headers, resetsAt })
  if (counter.metric === 'rpm')
    return fail('rate_limit_exceeded', {
      retryAfterSeconds: endSeconds,
      headers,
      extra: { scope: counter.scope, limit: Number(note.cap), resets_at: resetsAt },
      ...(counter.scope === 'org' ? { message: `All keys of this organisation together may make ${note.cap} requests a minute (ORG_RPM).` } : {}),
    })
  if (counter.metric === 'tpm')
    return fail('rate_limit_exceeded', {
      retryAfterSeconds: endSeconds,
      headers,
      extra: { scope: counter.scope, limit: Number(note.cap), limit_name: 'tpm_limit', resets_at: resetsAt },
      message: `This ${counter.scope} may use ${note.cap} tokens a minute (tpm_limit), and this call does not fit in the rest of this minute. It resets at ${resetsAt}.`,
    })
  if (counter.metric === 'daily' && counter.scope === 'org')
    return fail('trial_limit_reached', {
      retryAfterSeconds: endSeconds,
      headers,
      extra: { scope: 'org', limit: Number(note.cap), limit_name: 'TRIAL_ORG_DAILY', resets_at: resetsAt },
      message: `The trial keys of this organisation, and of others that the same person made, may make ${note.cap} free calls a day together (TRIAL_ORG_DAILY). It resets at ${resetsAt}. Top up to end the trial, or use your own provider key.`,
    })
  return fail('daily_limit_reached', { retryAfterSeconds: endSeconds, headers, extra: { limit: Number(note.cap), resets_at: resetsAt } })
}

/** Returns what the charged agent and the run have left, as replies show it. */
function remainingHeaders(counters: readonly Counter[]): Record<string, string> {
  const left = agentRemainingOf(counters)
  const ofRun = runRemainingOf(counters)
  const calls = runCallsRemainingOf(counters)
  const spent = runSpentOf(counters)
  return {
    ...(left === null ? {} : { [brHeader.budgetRemainingInr]: inrTextOf(left) }),
    ...(spent === null ? {} : { [brHeader.runCostInr]: inrTextOf(spent) }),
    ...(ofRun === null ? {} : { [brHeader.runRemainingInr]: inrTextOf(ofRun) }),
    ...(calls === null ? {} : { [brHeader.runCallsRemaining]: String(calls) }),
  }
}

/** Returns the error of a cap of a run. No time ends it, so the caller gets no time to wait: only its owner can raise the cap. */
function runError({ metric }: Counter, note: RefusalNote, { runId }: RunHold, headers: Readonly<Record<string, string>>): GatewayError {
  const ofRun = { scope: 'run', run_id: runId }
  if (metric === 'run_calls')
    return fail('run_calls_exceeded', {
      headers: { ...headers, [brHeader.runId]: runId },
      extra: { ...ofRun, cap: Number(note.cap), spent: Number(note.spent), held: Number(note.held), in_doubt: Number(note.inDoubt) },
    })
  return fail('run_budget_exceeded', {
    headers: { ...headers, [brHeader.runId]: runId },
    extra: {
      ...ofRun,
      cap_inr: inrFromUinr(note.cap),
      spent_inr: inrFromUinr(note.spent),
      held_inr: inrFromUinr(note.held),
      in_doubt_inr: inrFromUinr(note.inDoubt),
    },
  })
}

function toolRateError(
  { metric, scope }: Counter,
  { cap }: RefusalNote,
  { resetsAt, ...when }: { readonly retryAfterSeconds: number; readonly headers: Readonly<Record<string, string>>; readonly resetsAt: string },
): GatewayError {
  const isMinute = metric === 'rpm'
  const name = isMinute ? 'tool_rpm' : 'tool_daily'
  return fail(isMinute ? 'rate_limit_exceeded' : 'daily_limit_reached', {
    ...when,
    extra: { scope, limit: Number(cap), limit_name: name, resets_at: resetsAt },
    message: `This ${scope} may make ${cap} calls of tools ${isMinute ? 'in a minute' : 'on a day'} (${name}). The limit resets at ${resetsAt}.`,
  })
}

const endSecondsOf = ({ endsAtMs }: Counter, nowMs: number): number => Math.max(1, Math.ceil((endsAtMs - nowMs) / 1000))

/** Returns the error of a budget. A budget of all time has no end to wait for. */
function budgetError(counter: Counter, note: RefusalNote, nowMs: number, headers: Readonly<Record<string, string>>): GatewayError {
  const isEndless = !Number.isFinite(counter.endsAtMs)
  const resetsAt = isEndless ? null : new Date(counter.endsAtMs).toISOString()
  const period = periodOfName(counter.period)
  const extra = {
    scope: counter.scope,
    period,
    cap_inr: inrFromUinr(note.cap),
    spent_inr: inrFromUinr(note.spent),
    held_inr: inrFromUinr(note.held),
    in_doubt_inr: inrFromUinr(note.inDoubt),
    resets_at: resetsAt,
  }
  const isAgent = counter.scope === 'agent'
  const message = `The ${adjectiveOf(period)} budget of this ${counter.scope} (₹${extra.cap_inr}) is`
  if (note.spent < note.cap && note.held > 0n)
    return fail(isAgent ? 'agent_budget_held' : 'budget_held', { extra, headers, retryAfterSeconds: heldRetrySeconds, shouldRetry: true })
  return fail(isAgent ? 'agent_budget_exceeded' : 'budget_exceeded', {
    extra,
    headers,
    retryAfterSeconds: isEndless ? endlessRetrySeconds : endSecondsOf(counter, nowMs),
    shouldRetry: false,
    message:
      note.spent < note.cap
        ? `${message} too small for what is asked. You can ${howToAsk}.`
        : `${message} spent. Do not retry: ${isEndless ? 'it never resets, but' : `it resets at ${resetsAt}, or`} its owner can raise it. You can ${howToAsk}.`,
  })
}

/** Returns the error of the prepaid balance, which has no period. The balance rises with a top-up, or in a moment when running calls hold the rest of it. */
function creditError({ cap, spent, held, inDoubt }: RefusalNote, headers: Readonly<Record<string, string>>): GatewayError {
  const extra = { balance_inr: inrFromUinr(cap - spent), held_inr: inrFromUinr(held), in_doubt_inr: inrFromUinr(inDoubt) }
  if (spent < cap && held > 0n) return fail('credits_held', { extra, headers, retryAfterSeconds: heldRetrySeconds })
  return fail('insufficient_credits', { extra, headers })
}

function concurrencyError({ scope }: Counter, { cap }: RefusalNote, headers: Readonly<Record<string, string>>): GatewayError {
  const name = scope === 'org' ? 'ORG_RUNNING' : 'max_concurrency'
  const owner = scope === 'org' ? 'organisation' : scope
  const calls = cap === 1n ? 'one call' : `${cap} calls`
  return fail('concurrency_limit_reached', {
    retryAfterSeconds: concurrencyRetrySeconds,
    headers,
    extra: { scope, limit: Number(cap) },
    message: `This ${owner} runs ${calls} concurrently, which is its most (${name}). Wait for one to end; a stream counts until its last byte.`,
  })
}
