/** The end of streams that nobody reads any more: what they are charged, and the reading on that finds it out. */

import { tokensOfChars } from '../charge/estimate.ts'
import type { Meter } from '../charge/meter.ts'
import type { StreamAnswer } from '../replies/answer.ts'
import type { StreamHold } from '../stream/stream-hold.ts'
import type { Departure } from './departure.ts'
import { readOnMaxBytes } from './departures.ts'

/** What a stream is charged by. */
export interface Charging {
  readonly meter: Meter
  readonly hold: StreamHold
  /** The model thinks without showing it. */
  readonly thinksUnseen: boolean
}

/**
 * What a stream of a model that thinks unseen is taken to have used by now: what its provider told last, or the larger of what was shown
 * and what it may have thought, as far as the hold covers that.
 */
export function shownOrThought({ adapter }: StreamAnswer, { meter, hold }: Charging): ReturnType<StreamAnswer['adapter']['usage']> {
  const usage = adapter.usage()
  if (adapter.reported) return usage
  const thought = meter.withinHold(madeBy(adapter, meter, hold))
  return thought <= usage.completionTokens ? usage : { ...usage, completionTokens: thought }
}

/** Tokens that a model which thinks unseen is taken to have made by now, at the speed at which it writes. */
export function madeBy({ outputChars }: StreamAnswer['adapter'], meter: Meter, hold: StreamHold): number {
  const shownTokens = tokensOfChars(outputChars)
  return hold.outputTokens(shownTokens, meter.lastChunkMs, meter.tokensPerSecond(shownTokens))
}

/** How long the provider of a stream may be read on: of a model that shows all it makes not at all once it has told its prompt. */
export function readOnMsOf({ adapter }: StreamAnswer, { meter, hold, thinksUnseen }: Charging): number {
  if (!thinksUnseen && adapter.promptTold) return 0
  return meter.readOnMs(madeBy(adapter, meter, hold), meter.tokensPerSecond(tokensOfChars(adapter.outputChars)))
}

/** What a stream is taken to have used by now that its caller has left. */
export function leftUsage(answer: StreamAnswer, deps: Charging): ReturnType<StreamAnswer['adapter']['usage']> {
  return deps.thinksUnseen ? shownOrThought(answer, deps) : answer.adapter.usage()
}

/** Settles a stream that ends before its provider has told what it used, or right behind that. */
export function settleUnread(answer: StreamAnswer, deps: Charging, outcome: 'cut' | 'client_gone', status = 200): void | Promise<void> {
  const { adapter } = answer
  return deps.meter.settle(leftUsage(answer, deps), !adapter.reported, outcome, status)
}

/**
 * Reads a stream on that its caller has left, until its usage is known, its bytes or its time are used up, the budget does not cover more,
 * or somebody ends it. Of a model that shows all it makes only what the prompt came to is waited for. Settles nothing and never throws.
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
      if (!(await hold.afterChunk(tokensOfChars(adapter.outputChars)))) return
      const next: IteratorResult<Uint8Array> = await rest.next()
      if (next.done) {
        adapter.end()
        return
      }
      leftBytes -= next.value.byteLength
      adapter.push(next.value)
      if (!meter.ended) meter.progress(leftUsage(answer, deps))
      departure.flows()
    }
  } catch {
    // It broke off, or was ended: what is known by now is charged.
  } finally {
    departure.removeEventListener('abort', onAbort)
  }
}
