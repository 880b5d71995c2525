import { fail } from '../../../platform/errors.ts'
import type { CancelSignal } from '../../../platform/loop/cancellation.ts'
import { CallCutError } from '../../../platform/loop/inflight.ts'
import type { StreamPump, StreamSink } from '../../../platform/loop/stream-sink.ts'
import type { FlowEnd } from '../../../platform/outbound/upstream-body.ts'
import type { Meter } from '../charge/meter.ts'
import { type BytesAnswer, takeFirst } from '../replies/answer.ts'
import { noRoomEnd } from '../replies/no-room.ts'
import { endOfCut, faultOf, type StreamEnd } from './stream-end.ts'

export interface BytesRelayDeps {
  readonly meter: Meter
  readonly signal: CancelSignal
  /** Is called when the reply is over. `broke` is true when the provider broke it off after the first byte. */
  onEnd(broke: boolean): void
}

const noBytes = new Uint8Array()
const brokenOff: StreamEnd = { name: 'upstream_stream_error', message: 'The provider broke off the reply.' }

/**
 * Returns the relay of a reply, byte for byte. It reads the next chunk when the client has taken the one before. The cost does not grow during the
 * reply, so the hold is not extended. The call is settled exactly once, before the end of the reply is sent. When the reply breaks off or the caller is
 * revoked, the bytes report it if their format can. Otherwise the relay rejects, which closes the client's connection. A reply also ends when this
 * process has no room for the event that its reading keeps.
 */
export function relayBytes(answer: BytesAnswer, deps: BytesRelayDeps): StreamPump {
  return sink => relay(answer, deps, sink)
}

async function relay(answer: BytesAnswer, { meter, signal, onEnd }: BytesRelayDeps, sink: StreamSink): Promise<void> {
  const { body, reading, held } = answer
  let broke = false
  const settle = (outcome: 'ok' | 'upstream_broke' | 'cut' | 'client_gone'): void | Promise<void> => meter.settle(reading.usage(), !reading.exact, outcome, 200)
  // A client that does not read must not keep the hold of a call that was cut.
  const onAbort = (): void => {
    if (signal.reason instanceof CallCutError) Promise.resolve(settle('cut')).catch(() => undefined)
  }
  signal.addEventListener('abort', onAbort, { once: true })
  let lacking: ReturnType<typeof held.keeps> = null
  const take = (chunk: Uint8Array): boolean => {
    reading.push(chunk)
    lacking = held.keeps(reading.heldBytes)
    return lacking === null && sink.push(chunk)
  }
  try {
    meter.progress(reading.usage())
    let end: FlowEnd = sink.push(takeFirst(answer) ?? noBytes) ? 'nudged' : 'stopped'
    while (end !== 'ended') {
      if (end === 'stopped') await sink.room()
      if (sink.isGone) return
      signal.throwIfAborted()
      end = await body.flow(take, meter.orgId)
      if (lacking !== null) {
        await settle('cut')
        const frame = reading.fail(faultOf(noRoomEnd(lacking)))
        if (frame !== null) sink.push(frame)
        return
      }
    }
    if (!reading.complete) throw new Error('ended early')
    await settle('ok')
  } catch (error) {
    const { reason } = signal
    const isCut = signal.aborted && reason instanceof CallCutError
    if (signal.aborted && !isCut) return
    // The provider is not at fault: the end could not be recorded. A reply without its record must not get a good end.
    if (meter.ended && !isCut) throw error
    broke = !isCut
    const end = isCut ? endOfCut(reason) : brokenOff
    await settle(isCut ? 'cut' : 'upstream_broke')
    const frame = reading.fail(faultOf(end))
    if (frame === null) throw isCut ? reason : fail('upstream_stream_error', { message: 'The provider broke off the reply.', cause: error })
    sink.push(frame)
  } finally {
    signal.removeEventListener('abort', onAbort)
    body.destroy()
    held.release()
    onEnd(broke)
    if (!meter.ended) await settle('client_gone')
  }
}
