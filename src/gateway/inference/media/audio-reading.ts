/** Reads the usage in the replies of audio calls (sound or transcripts) while the gateway passes them to the client. */
import type { MeasuredLength } from '../../../platform/media/audio-length.ts'
import { isObject, parsedObject } from '../../../platform/values/json.ts'
import type { StreamFault } from '../../wire/chat/chat-stream.ts'
import { dataFrame } from '../../wire/sse/sse.ts'
import { SseEventReader } from '../../wire/sse/sse-events.ts'
import { noUsage, type TokenUsage } from '../../wire/usage.ts'
import type { BytesReading } from '../replies/answer.ts'

/** The longest recording that is believed, in seconds. Its figures must fit into the usage rows. */
const secondsMax = 1_000_000

/** Returns the length of the recording that the provider reports, in whole seconds rounded up. Null when it reports none. */
export function secondsOf(reply: Readonly<Record<string, unknown>>): number | null {
  const usage = reply['usage']
  const claimed = isObject(usage) ? usage['seconds'] : undefined
  return wholeSeconds(claimed) ?? wholeSeconds(reply['duration'])
}

/** A provider may count up to this many times the seconds that were measured, or this part of them. */
const secondsFactor = 2
/** It may count this many seconds more or fewer than that. */
const secondsSlack = 10

/**
 * Returns the usage of a recording for the length that a provider reports. A report far from the measured length is not believed: the measured length is
 * charged, and the usage is doubted. A longer report is believed up to the length that a file of this size can have, because the sender may have hidden
 * sound from the measure. An estimate by size is long rather than short, so any shorter report is believed. Decision 0779.
 */
export function recordingUsage(reported: number, { seconds, isRead, mostSeconds }: MeasuredLength): TokenUsage {
  if (reported > Math.max(seconds * secondsFactor, mostSeconds) + secondsSlack) return { ...usageOfSeconds(seconds), doubt: 'input_above' }
  if (isRead && reported < seconds / secondsFactor - secondsSlack) return { ...usageOfSeconds(seconds), doubt: 'input_below' }
  return usageOfSeconds(reported)
}

const usageOfSeconds = (audioSeconds: number): TokenUsage => ({ ...noUsage, media: { images: 0, audioSeconds, characters: 0 } })

/** Some providers write the duration as text. */
function wholeSeconds(value: unknown): number | null {
  const seconds = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  return typeof seconds === 'number' && seconds >= 0 && seconds <= secondsMax ? Math.max(1, Math.ceil(seconds)) : null
}

function faultFrame({ message, type, code }: StreamFault): Buffer {
  return Buffer.from(dataFrame({ type: 'error', error: { message, type: type ?? 'api_error', code: code ?? 'upstream_stream_error', param: null } }))
}

/** Reads spoken audio, whose cost is known beforehand. A fault can be reported in a stream of events, but not in the bytes of sound. */
export class SpeechReading implements BytesReading {
  readonly exact = true
  readonly complete = true
  readonly heldBytes = 0
  readonly #usage: TokenUsage
  readonly #isEvents: boolean

  constructor(usage: TokenUsage, contentType: string) {
    this.#usage = usage
    this.#isEvents = contentType.startsWith('text/event-stream')
  }

  push(): void {}

  usage(): TokenUsage {
    return this.#usage
  }

  fail(fault: StreamFault): Uint8Array | null {
    return this.#isEvents ? Buffer.concat([Buffer.from('\n\n'), faultFrame(fault)]) : null
  }
}

/** The longest event of a transcript in bytes: the text of a day of speech. */
const transcriptEventMaxBytes = 2 * 1024 * 1024

/** Reads a transcript in events. The last event may report the length of the recording. */
export class TranscriptReading implements BytesReading {
  complete = false
  readonly #events = new SseEventReader(transcriptEventMaxBytes)
  readonly #recording: MeasuredLength
  #seconds: number | null = null

  constructor(recording: MeasuredLength) {
    this.#recording = recording
  }

  get exact(): boolean {
    return this.#seconds !== null
  }

  get heldBytes(): number {
    return this.#events.heldBytes
  }

  push(chunk: Uint8Array): void {
    for (const event of this.#events.push(chunk)) if (event.kind === 'event') this.#read(event.data)
  }

  usage(): TokenUsage {
    return this.#seconds === null ? usageOfSeconds(this.#recording.seconds) : recordingUsage(this.#seconds, this.#recording)
  }

  fail(fault: StreamFault): Uint8Array {
    return Buffer.concat([Buffer.from('\n\n'), faultFrame(fault)])
  }

  #read(data: string): void {
    if (data === '[DONE]') {
      this.complete = true
      return
    }
    // Only the end reports the length. The many events with text before it are not parsed.
    if (!data.includes('"usage"') && !data.includes('.done"') && !data.includes('"finish_reason"')) return
    const event = parsedObject(data)
    if (event === null) return
    this.#seconds = secondsOf(event) ?? this.#seconds
    if (event['type'] === 'transcript.text.done' || this.#seconds !== null) this.complete = true
  }
}
