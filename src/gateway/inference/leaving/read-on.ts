/** Ends streams without a reader: reads on to learn their usage, and decides their charge. */

import type { Clock } from '../../../platform/clock.ts'
import { nextTurn } from '../../../platform/loop/next-turn.ts'
import { tokensOfChars } from '../charge/estimate.ts'
import type { Meter } from '../charge/meter.ts'
import type { StreamAnswer } from '../replies/answer.ts'
import type { StreamHold } from '../stream/stream-hold.ts'
import type { Departure } from './departure.ts'
import { arrivedMostMs, arrivedQuietMs, readOnMaxBytes, readOnMs } from './departures.ts'

/** The data by which a stream is charged. */
export interface Charging {
  readonly meter: Meter
  readonly hold: StreamHold
  /** True when the model thinks without showing it. */
  readonly thinksUnseen: boolean
  /** The most tokens that the provider may count for the prompt, when the provider is followed. Otherwise it is the estimate. */
  readonly promptMostTokens: number
  /** The departure that follows the provider after the caller has left. Null when the provider is not followed. */
  readonly departure: Departure | null
  /** True when the provider is followed after a cut as well. */
  readonly isFollowed: boolean
}

/** Who ended a stream that was not read to its end: this gateway, its caller, or a provider whose stream is beyond a bound. */
export type UnreadOutcome = 'cut' | 'client_gone' | 'upstream_broke'

type Usage = ReturnType<StreamAnswer['adapter']['usage']>

/** A stream whose caller has stopped reading: since when, in milliseconds of the monotonic clock, and the output tokens until then. */
export interface Stall {
  readonly sinceMs: number
  readonly tokens: number
}

/**
 * Returns the assumed usage so far of a stream of a model with hidden thinking. That is the usage that the provider reported. Without a report
 * it is the larger of the shown output and the assumed thinking, as far as the hold covers it.
 */
export function shownOrThought({ adapter }: StreamAnswer, { meter, hold }: Charging): Usage {
  const usage = adapter.usage()
  if (adapter.reported) return usage
  return withOutput(usage, meter.withinHold(madeBy(adapter, meter, hold)))
}

const withOutput = (usage: Usage, tokens: number): Usage => (tokens <= usage.completionTokens ? usage : { ...usage, completionTokens: tokens })

/** Returns the tokens that a model with hidden thinking is assumed to have made, at the speed of its shown output. */
export function madeBy({ outputChars }: StreamAnswer['adapter'], meter: Meter, hold: StreamHold): number {
  const shownTokens = tokensOfChars(outputChars)
  return hold.outputTokens(shownTokens, meter.lastChunkMs, meter.tokensPerSecond(shownTokens))
}

/**
 * Returns the milliseconds for which the provider of a stream may be read on. The result is 0 for a model without hidden thinking once the
 * provider has reported the prompt's tokens.
 */
export function readOnMsOf(answer: StreamAnswer, deps: Charging): number {
  const { adapter } = answer
  const { meter, hold, thinksUnseen } = deps
  if (!thinksUnseen && adapter.promptTold) return 0
  if (hold.isClosed || isPromptUnknown(answer, deps)) return readOnMs
  return meter.readOnMs(madeBy(adapter, meter, hold), meter.tokensPerSecond(tokensOfChars(adapter.outputChars)))
}

/** True when the prompt may cost far more than its estimate and the provider has not reported its tokens. */
const isPromptUnknown = ({ adapter }: StreamAnswer, { meter, promptMostTokens }: Charging): boolean =>
  promptMostTokens > meter.promptTokens && !adapter.promptTold

/** Returns the assumed usage so far of a stream whose caller has left. */
export function leftUsage(answer: StreamAnswer, deps: Charging): Usage {
  return deps.thinksUnseen ? shownOrThought(answer, deps) : answer.adapter.usage()
}

/** Returns the assumed usage of a stream that ended without a report. The unreported tokens count as the most that is possible within the hold. */
function untoldUsage(answer: StreamAnswer, deps: Charging): Usage {
  const { meter, hold, thinksUnseen, promptMostTokens, departure } = deps
  const shown = leftUsage(answer, deps)
  const usage = thinksUnseen && departure?.hasNoPlace === true ? withOutput(shown, hold.heldTokens) : shown
  if (!isPromptUnknown(answer, deps)) return usage
  return { ...usage, promptTokens: meter.promptWithinHold(promptMostTokens, usage.completionTokens) }
}

/**
 * Settles a stream that ends before its provider has reported the usage, or right after the report. For a followed stream no output is charged
 * beyond the budgets: the charge is the reported output or the held output.
 */
export async function settleUnread(answer: StreamAnswer, deps: Charging, outcome: UnreadOutcome, status = 200): Promise<void> {
  const { adapter } = answer
  const { meter, departure } = deps
  if (!adapter.reported) return meter.settle(untoldUsage(answer, deps), true, outcome, status)
  const told = adapter.usage()
  const most = departure?.hasLeft === true && !(await isCovered(meter, told)) ? meter.withinHold(told.completionTokens) : told.completionTokens
  await meter.settle(most < told.completionTokens ? { ...told, completionTokens: most } : told, most < told.completionTokens, outcome, status)
}

/** Extends the hold to the reported usage, as far as the budgets allow. */
async function isCovered(meter: Meter, usage: Usage): Promise<boolean> {
  try {
    return await meter.extendTo(usage)
  } catch {
    // The database could not be asked, so the usage counts as not covered.
    return false
  }
}

/**
 * Reads on in a stream whose caller has left. It ends when the usage is known, when its bytes or its time are used up, or when the call is cut.
 * For a model without hidden thinking it waits only for the prompt's tokens. It extends the hold as for a reader, until a budget refuses. It
 * settles nothing and never throws.
 */
export async function readOn(answer: StreamAnswer, departure: Departure, deps: Charging): Promise<void> {
  const { adapter, rest, body } = answer
  const { meter, hold, thinksUnseen } = deps
  if (!departure.hasLeft || departure.aborted) return
  const onAbort = (): void => body.destroy()
  body.detachSignal()
  departure.addEventListener('abort', onAbort)
  let leftBytes = readOnMaxBytes
  try {
    while (!adapter.finished && !adapter.failed && leftBytes > 0) {
      if (!thinksUnseen && adapter.promptTold) return
      if (!hold.isClosed && !(await hold.afterChunk(tokensOfChars(adapter.outputChars)))) hold.close()
      const next: IteratorResult<Uint8Array> = await rest.next()
      if (next.done) {
        adapter.end()
        return
      }
      if (next.value.byteLength === 0) continue
      leftBytes -= next.value.byteLength
      adapter.push(next.value)
      if (answer.held.keeps(adapter.heldBytes) !== null) return
      if (!meter.ended) meter.progress(leftUsage(answer, deps))
      // Once the hold is closed, further output is not charged. The reading is then extended only to learn the prompt's tokens.
      if (!hold.isClosed || isPromptUnknown(answer, deps)) departure.flows()
    }
  } catch {
    // The stream broke off or was ended. The known usage is charged.
  } finally {
    departure.removeEventListener('abort', onAbort)
  }
}

/**
 * Settles a stream that ends while its caller does not read. Its provider went on meanwhile, so the bytes that have arrived are read first. When more
 * bytes wait than can be read, the output is assumed from the time of the stall and the speed of the model. Decision 0765 gives the reasons.
 */
export async function settleStalled(answer: StreamAnswer, deps: Charging & { readonly clock: Clock }, stall: Stall, outcome: UnreadOutcome): Promise<void> {
  const { adapter, body } = answer
  const { meter, clock } = deps
  const waitedMs = clock.monotonicMs() - stall.sinceMs
  const tokensPerSecond = meter.tokensPerSecond(stall.tokens)
  const isAllRead = adapter.finished || (await readArrived(answer, clock))
  body.destroy()
  if (meter.ended) return
  if (adapter.reported) return settleUnread(answer, deps, outcome)
  const usage = untoldUsage(answer, deps)
  const assumedTokens = isAllRead ? 0 : Math.floor(stall.tokens + (waitedMs * tokensPerSecond) / 1000)
  await meter.settleGuess(withOutput(usage, assumedTokens), outcome, 200)
}

/** Reads what a provider has sent and nobody has taken. Returns true when nothing more had arrived. It never throws. */
async function readArrived({ adapter, rest, body, held }: StreamAnswer, clock: Clock): Promise<boolean> {
  const endMs = clock.monotonicMs() + arrivedMostMs
  let leftBytes = readOnMaxBytes
  try {
    while (!adapter.finished && !adapter.failed) {
      if (leftBytes <= 0 || clock.monotonicMs() > endMs) return false
      const next: IteratorResult<Uint8Array> = await unlessQuiet(rest.next(), body, clock)
      if (next.done === true || next.value.byteLength === 0) break
      leftBytes -= next.value.byteLength
      adapter.push(next.value)
      if (held.keeps(adapter.heldBytes) !== null) return false
    }
    return true
  } catch {
    // The provider broke off. What it sent before is read.
    return true
  }
}

/** Makes a read that waits return an empty chunk when nothing comes. Bytes that came while the event loop was busy are read before. */
async function unlessQuiet<T>(read: Promise<T>, body: StreamAnswer['body'], clock: Clock): Promise<T> {
  let isPending = true
  const stop = clock.after(arrivedQuietMs, () => {
    void nextTurn().then(() => {
      if (isPending) body.nudge()
    })
  })
  try {
    return await read
  } finally {
    isPending = false
    stop()
  }
}
