/**
 * Finds runs that repeat themselves: the same calls of tools with the same results, the same body, or too many calls for some minutes. What it knows is in
 * memory only, as keyed hashes. It is best effort: each process sees its own calls. Decision 0854 gives the reasons.
 */
import { createHash } from 'node:crypto'
import type { Clock } from '../../../../platform/clock.ts'
import type { Db } from '../../../../platform/db/db.ts'
import { fail } from '../../../../platform/errors.ts'
import type { Log } from '../../../../platform/observe/log.ts'
import type { LoopRule } from '../../../../platform/security/run-caps.ts'
import { emit } from '../../../webhooks/events/events.ts'
import type { Turn } from '../../../wire/runs/last-turn.ts'
import type { RunRef } from '../ended-runs.ts'
import { hashOf, isWholeSample, piecesOfBody, piecesOfTurn, sampleOfBody, sampleOfTurn } from './keyed-hash.ts'
import { type BodyState, type LoopKind, type RunState, RunStates, type TurnState } from './run-states.ts'

/** A repetition is reported at this count. */
const reportedAt = 5
/** A repetition is refused at this count, when the rule says so. */
const stoppedAt = 10
/** The time in which repeated bodies are counted. */
const bodyWindowMs = 60_000
const paceCalls = 30
const paceMinutes = 5
const minuteMs = 60_000
/** The most agents and sub-agents of a run, and the most bodies, that are remembered. */
const actorsMax = 16
const bodiesMax = 16
/** The most events that are being written. Beyond it, the next call of the run reports the loop. */
const reportsMax = 20
const retryMs = 60_000

export interface RunLoopsDeps {
  readonly db: Db
  readonly log: Log
  readonly clock: Clock
}

/** The run of a call, and who makes the call in it. */
export interface LoopedRun {
  readonly ref: RunRef
  /** The key of the run in memory. */
  readonly key: string
  /** The agent or sub-agent that makes the call. */
  readonly actor: string
  readonly loop: LoopRule
}

/** What a call says. */
export interface LoopContent {
  /** Null for a call of a tool. */
  readonly body: Buffer | null
  /** The last turn of the conversation: empty when its last answer calls no tool, null when there is none. */
  readonly turn: Turn | null
}

/** A call that is watched. */
export interface LoopCall {
  /** Notes that the call was answered with success. Only such calls count, so a repetition after a failure is no loop. */
  answered(): void
}

type InTurn = <T>(work: () => T) => Promise<T>

/** The hashes of a call. `full` is null when no earlier call has the same sample. */
interface Seen {
  readonly body: string | null
  readonly bodyFull: string | null
  readonly turn: string | null
  readonly turnFull: string | null
  /** True when the conversation has an answer without calls of tools, which ends a repetition. */
  readonly endsTurns: boolean
}

/** The watch for loops of all runs in this process. */
export class RunLoops {
  readonly #deps: RunLoopsDeps
  readonly #states = new RunStates()
  #reports = 0

  constructor(deps: RunLoopsDeps) {
    this.#deps = deps
  }

  /**
   * Begins to watch a call. Returns a promise only when a long text must be read in turns. Throws `run_loop_detected` when the call repeats what its run has
   * said too often, and the rule says `stop`.
   */
  begin(named: LoopedRun, { body, turn }: LoopContent, inTurn: InTurn | undefined): LoopCall | Promise<LoopCall> {
    // The name of an actor is a word of the caller, and a part of a header keeps the whole header in memory.
    const run = named.actor === '' ? named : { ...named, actor: sampleOfTurn([named.actor]).sample }
    const state = this.#states.of(run.ref.orgId, run.key, this.#deps.clock.nowMs())
    const bodySample = body === null || body.length === 0 ? null : sampleOfBody(body)
    const ofTurn = turn === null || turn.length === 0 ? null : sampleOfTurn(turn)
    const turnSample = ofTurn?.sample ?? null
    const bodyFull = bodySample === null || body === null ? null : wholeOf(body, bodySample, state.bodies.has(bodySample), inTurn)
    const isSameTurn = turnSample !== null && state.turns.get(run.actor)?.sample === turnSample
    const turnFull = ofTurn?.isWhole === true ? turnSample : isSameTurn && turn !== null ? hashOf(piecesOfTurn(turn), inTurn) : null
    const seen = { body: bodySample, turn: turnSample, endsTurns: turn?.length === 0 }
    if (bodyFull instanceof Promise || turnFull instanceof Promise)
      return Promise.all([bodyFull, turnFull]).then(([wholeBody, wholeTurn]) => this.#enter(run, state, { ...seen, bodyFull: wholeBody, turnFull: wholeTurn }))
    return this.#enter(run, state, { ...seen, bodyFull, turnFull })
  }

  #enter(run: LoopedRun, state: RunState, seen: Seen): LoopCall {
    const turn = turnAfter(state.turns.get(run.actor), seen)
    if (run.loop === 'stop') {
      const bodies = (bodyAfter(state, seen, this.#deps.clock.nowMs())?.answeredAtMs.length ?? 0) >= stoppedAt
      const kind = (turn?.count ?? 0) >= stoppedAt ? 'same_call' : bodies ? 'same_body' : null
      if (kind !== null) {
        this.#report(run, state, kind, stoppedAt)
        throw stopped(run, kind)
      }
    }
    return { answered: () => this.#answered(run, state, seen) }
  }

  #answered(run: LoopedRun, state: RunState, seen: Seen): void {
    const nowMs = this.#deps.clock.nowMs()
    const turn = turnAfter(state.turns.get(run.actor), seen)
    if (turn !== null) put(state.turns, run.actor, turn, actorsMax)
    else if (seen.endsTurns) state.turns.delete(run.actor)
    if (turn !== null && turn.count >= reportedAt) this.#report(run, state, 'same_call', turn.count)
    const body = bodyAfter(state, seen, nowMs)
    if (body !== null && seen.body !== null) {
      put(state.bodies, seen.body, body, bodiesMax)
      if (body.answeredAtMs.length >= reportedAt) this.#report(run, state, 'same_body', body.answeredAtMs.length)
    }
    if (isFast(state, nowMs)) this.#report(run, state, 'pace', state.callsOfMinute)
  }

  /** Sends the event once for each run and kind. Its id says which loop it reports, so that several processes send one. */
  #report({ ref, key, loop }: LoopedRun, state: RunState, kind: LoopKind, count: number): void {
    const { db, log, clock } = this.#deps
    const nowMs = clock.nowMs()
    if ((state.reported.get(kind) ?? 0) > nowMs || this.#reports >= reportsMax) return
    state.reported.set(kind, Number.POSITIVE_INFINITY)
    this.#reports++
    const { orgId, ownerKind, ownerId, runId } = ref
    const isOfAgent = ownerKind === 'agent'
    const data = {
      run_id: runId,
      agent_id: isOfAgent ? ownerId : null,
      key_id: isOfAgent ? null : ownerId,
      kind,
      count,
      rule: loop === 'stop' ? loop : 'warn',
    } as const
    const id = `evt_${createHash('sha256')
      .update(JSON.stringify(['run.loop', key, kind]))
      .digest('hex')
      .slice(0, 32)}`
    db.tx(tx => emit(tx, { id, orgId, type: 'run.loop', atMs: clock.nowMs(), data }))
      .catch((error: unknown) => {
        state.reported.set(kind, clock.nowMs() + retryMs)
        log.warn('run_loop_event_failed', { orgId, error })
      })
      .finally(() => {
        this.#reports--
      })
  }
}

/** Returns the hash of a whole body, or null when no earlier body has its sample. */
function wholeOf(body: Buffer, sample: string, isKnown: boolean, inTurn: InTurn | undefined): string | null | Promise<string> {
  if (isWholeSample(body)) return sample
  return isKnown ? hashOf(piecesOfBody(body), inTurn) : null
}

function stopped({ ref: { runId } }: LoopedRun, kind: LoopKind) {
  const what = kind === 'same_call' ? 'the same calls of tools with the same results' : `the same request within ${bodyWindowMs / 1000} seconds`
  return fail('run_loop_detected', {
    message: `This run repeats itself: it had ${what} ${stoppedAt - 1} times. Do not retry: do something else, or stop.`,
    extra: { scope: 'run', run_id: runId, kind, cap: stoppedAt, spent: stoppedAt - 1, held: 0 },
  })
}

/** Returns the last turn after a call. Null when the call has none. The same body again is no new turn. */
function turnAfter(before: TurnState | undefined, { turn, turnFull, body }: Seen): TurnState | null {
  if (turn === null) return null
  // The first turn with a sample is taken to be the same as the second one, because its whole hash was not made.
  const isSame = before !== undefined && before.sample === turn && turnFull !== null && (before.full === null || before.full === turnFull)
  if (!isSame) return { sample: turn, full: turnFull, body, count: 1 }
  return { sample: turn, full: turnFull, body, count: before.body === body ? before.count : before.count + 1 }
}

/** Returns the answers to the body of a call, with this one. Null when the call has no body. */
function bodyAfter({ bodies }: RunState, { body, bodyFull }: Seen, nowMs: number): BodyState | null {
  if (body === null) return null
  const before = bodies.get(body)
  // The first body with a sample is taken to be the same as the second one, because its whole hash was not made.
  const isSame = before !== undefined && bodyFull !== null && (before.full === null || before.full === bodyFull)
  if (!isSame) return { full: bodyFull, answeredAtMs: [nowMs] }
  const recent = before.answeredAtMs.filter(atMs => nowMs - atMs < bodyWindowMs)
  return { full: bodyFull, answeredAtMs: [...recent, nowMs].slice(-stoppedAt) }
}

/** Counts a call. Returns true when this minute and the ones before it have too many calls. */
function isFast(state: RunState, nowMs: number): boolean {
  const minute = Math.floor(nowMs / minuteMs)
  if (minute !== state.minute) {
    state.fastMinutes = minute === state.minute + 1 && state.callsOfMinute > paceCalls ? state.fastMinutes + 1 : 0
    state.minute = minute
    state.callsOfMinute = 0
  }
  state.callsOfMinute++
  return state.callsOfMinute > paceCalls && state.fastMinutes >= paceMinutes - 1
}

/** Sets a value as the newest one. The oldest one goes when there are too many. */
function put<V>(map: Map<string, V>, key: string, value: V, most: number): void {
  map.delete(key)
  map.set(key, value)
  if (map.size <= most) return
  for (const oldest of map.keys()) {
    map.delete(oldest)
    break
  }
}
