/** The end of streams that nobody reads any more: what they are charged, and the reading on that finds it out. */

import { tokensOfChars } from '../charge/estimate.ts'
import type { Meter } from '../charge/meter.ts'
import type { StreamAnswer } from '../replies/answer.ts'
import type { StreamHold } from '../stream/stream-hold.ts'
import type { Departure } from './departure.ts'
import { readOnMaxBytes, readOnMs } from './departures.ts'

/** What a stream is charged by. */
export interface Charging {
  readonly meter: Meter
  readonly hold: StreamHold
  /** The model thinks without showing it. */
  readonly thinksUnseen: boolean
  /** The most that the provider may count the prompt for, where only it can and is followed for that; else the estimate. */
  readonly promptMostTokens: number
  /** Follows the provider behind a caller who leaves; null: nobody does. */
  readonly departure: Departure | null
  /** It does so behind a cut as well. */
  readonly isFollowed: boolean
}

/** Who ended a stream that was not read to its end: this gateway, its caller, or a provider whose stream is beyond a bound. */
export type UnreadOutcome = 'cut' | 'client_gone' | 'upstream_broke'

type Usage = ReturnType<StreamAnswer['adapter']['usage']>

/**
 * What a stream of a model that thinks unseen is taken to have used by now: what its provider told last, or the larger of what was shown
 * and what it may have thought, as far as the hold covers that.
 */
export function shownOrThought({ adapter }: StreamAnswer, { meter, hold }: Charging): Usage {
  const usage = adapter.usage()
  if (adapter.reported) return usage
  return withOutput(usage, meter.withinHold(madeBy(adapter, meter, hold)))
}

const withOutput = (usage: Usage, tokens: number): Usage => (tokens <= usage.completionTokens ? usage : { ...usage, completionTokens: tokens })

/** Tokens that a model which thinks unseen is taken to have made by now, at the speed at which it writes. */
export function madeBy({ outputChars }: StreamAnswer['adapter'], meter: Meter, hold: StreamHold): number {
  const shownTokens = tokensOfChars(outputChars)
  return hold.outputTokens(shownTokens, meter.lastChunkMs, meter.tokensPerSecond(shownTokens))
}

/**
 * How long the provider of a stream may be read on: of a model that shows all it makes not at all once it has told its prompt.
 */
export function readOnMsOf(answer: StreamAnswer, deps: Charging): number {
  const { adapter } = answer
  const { meter, hold, thinksUnseen } = deps
  if (!thinksUnseen && adapter.promptTold) return 0
  if (hold.isClosed || isPromptUnknown(answer, deps)) return readOnMs
  return meter.readOnMs(madeBy(adapter, meter, hold), meter.tokensPerSecond(tokensOfChars(adapter.outputChars)))
}

/** The prompt may come to far more than its estimate, and the provider has not told. */
const isPromptUnknown = ({ adapter }: StreamAnswer, { meter, promptMostTokens }: Charging): boolean =>
  promptMostTokens > meter.promptTokens && !adapter.promptTold

/** What a stream is taken to have used by now that its caller has left. */
export function leftUsage(answer: StreamAnswer, deps: Charging): Usage {
  return deps.thinksUnseen ? shownOrThought(answer, deps) : answer.adapter.usage()
}

/** The same at the end, when nobody will tell more: what was not told counts as the most that is possible within the hold. */
function untoldUsage(answer: StreamAnswer, deps: Charging): Usage {
  const { meter, hold, thinksUnseen, promptMostTokens, departure } = deps
  const shown = leftUsage(answer, deps)
  const usage = thinksUnseen && departure?.hasNoPlace === true ? withOutput(shown, hold.heldTokens) : shown
  if (!isPromptUnknown(answer, deps)) return usage
  return { ...usage, promptTokens: meter.promptWithinHold(promptMostTokens, usage.completionTokens) }
}

/**
 * Settles a stream that ends before its provider has told what it used, or right behind that. Of a followed one no output is charged
 * that no budget covers: what was told, or what is held.
 */
export async function settleUnread(answer: StreamAnswer, deps: Charging, outcome: UnreadOutcome, status = 200): Promise<void> {
  const { adapter } = answer
  const { meter, departure } = deps
  if (!adapter.reported) return meter.settle(untoldUsage(answer, deps), true, outcome, status)
  const told = adapter.usage()
  const most = departure?.hasLeft === true && !(await isCovered(meter, told)) ? meter.withinHold(told.completionTokens) : told.completionTokens
  await meter.settle(most < told.completionTokens ? { ...told, completionTokens: most } : told, most < told.completionTokens, outcome, status)
}

/** Makes the hold cover what was told, as far as the budgets have that much. */
async function isCovered(meter: Meter, usage: Usage): Promise<boolean> {
  try {
    return await meter.extendTo(usage)
  } catch {
    // Nobody can say that a budget covers it.
    return false
  }
}

/**
 * Reads a stream on that its caller has left, until its usage is known, its bytes or its time are used up, or somebody ends it. Of a model that
 * shows all it makes only what the prompt came to is waited for. The hold is extended as for a reader, until a budget refuses. Settles
 * nothing and never throws.
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
      // Behind the end of the hold nobody pays for more output: then the end of reading on is put off for the prompt alone.
      if (!hold.isClosed || isPromptUnknown(answer, deps)) departure.flows()
    }
  } catch {
    // It broke off, or was ended: what is known by now is charged.
  } finally {
    departure.removeEventListener('abort', onAbort)
  }
}
