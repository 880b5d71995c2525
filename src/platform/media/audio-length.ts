import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import type { Clock } from '../clock.ts'
import { fail, type GatewayError } from '../errors.ts'
import type { CancelSignal } from '../loop/cancellation.ts'
import { type NoPlace, Shares } from '../shares.ts'
import type { LengthAnswer, LengthQuestion, ReadLength } from './audio-length-worker.ts'

/** Maximum time to measure one recording, in milliseconds. The wait for earlier recordings does not count. */
const measureMaxMs = 5000
/** Longest wait of a recording for the measuring thread, in milliseconds. */
const waitMaxMs = 20_000
/** Maximum number of recordings that wait. Their bytes are bounded elsewhere, as bodies of requests. */
const waitingMax = 256
/** The `retry-after` of a recording that could not be measured, in seconds. */
const retryAfterSeconds = 5
/** Memory limit of the measuring thread, without the recording itself. */
const threadMaxMb = 64
/** Maximum length of a recording: a day. */
const secondsMax = 86_400
/** Maximum number of bytes a second of uncompressed sound (96 kHz, stereo, 32 bits). A recording lasts at least its size divided by this. */
const bytesPerSecondMax = 768_000
/** Like `bytesPerSecondMax`, for MP3, AAC, Opus and Vorbis: 512 kbit/s. */
const compactBytesPerSecondMax = 64_000
/** Tolerance for rounding errors in sums of fractions of a second. */
const roundingSeconds = 1e-5
/** Assumed bytes a second of a recording whose sound cannot be counted. Speech codecs with a low bit rate have about 500. Decision 0486 gives the reasons. */
export const assumedBytesPerSecond = 500

export interface MeasuredLength {
  /** Whole seconds, rounded up, at least 1. */
  readonly seconds: number
  /** False when the sound could not be counted. The length is then an estimate by size, or the value in the header if that is larger. */
  readonly isRead: boolean
  /** The most seconds that a provider can have counted: the estimate by size, or the length when that is more. */
  readonly mostSeconds: number
}

/** Estimates the length of a recording by its size alone. */
export function lengthBySize(bytes: number): MeasuredLength {
  const seconds = secondsBySize(bytes)
  return { seconds, isRead: false, mostSeconds: seconds }
}

function secondsBySize(bytes: number): number {
  return Math.min(secondsMax, Math.max(1, Math.ceil(bytes / assumedBytesPerSecond)))
}

/**
 * Returns the counted length, limited to at least the shortest length that a recording of this size can have, and at most a day. When only a header states
 * the length, the result is at least the estimate by size, because the sender may have invented the header.
 */
function believed({ seconds, isCompact, isCounted }: ReadLength, size: number): MeasuredLength {
  if (!isCounted) {
    const most = Math.ceil(Math.max(Math.min(seconds, secondsMax), secondsBySize(size)))
    return { seconds: most, isRead: false, mostSeconds: most }
  }
  const least = size / (isCompact ? compactBytesPerSecondMax : bytesPerSecondMax)
  const longest = Math.max(Math.min(seconds, secondsMax), least)
  const whole = Math.max(1, Math.ceil(longest - roundingSeconds))
  return { seconds: whole, isRead: true, mostSeconds: Math.max(whole, secondsBySize(size)) }
}

/** The sender of a recording. */
export interface Sender {
  readonly orgId: number
  /** Aborts when nobody waits for the length any more. */
  readonly signal: CancelSignal
}

export interface AudioLengthsOptions {
  /** Returns the founder of an organisation. Without it, each organisation has a founder of its own. */
  readonly founderOf?: (orgId: number) => string
  /** One founder may have at most this percentage of the places that others leave free. */
  readonly sharePercent?: number
}

interface Waiting {
  readonly question: LengthQuestion
  answer(length: MeasuredLength): void
  refuse(reason: unknown): void
}

/**
 * Measures recordings in one thread, one after the other. The founders of organisations take turns. The thread starts with the first recording. A recording
 * is refused when there is no place for it, or when measuring takes too much time or memory. The length is not guessed then, because a caller could cause
 * such cases on purpose and a guess could be far too low (decision 0486).
 */
export class AudioLengths {
  readonly #clock: Pick<Clock, 'after'>
  readonly #founderOf: (orgId: number) => string
  readonly #places: Shares<string>
  /** The waiting recordings of each founder, in the order of the founders' turns. */
  readonly #waiting = new Map<string, Set<Waiting>>()
  #worker: Worker | null = null
  #running: { readonly recording: Waiting; readonly stopTimer: () => void } | null = null
  #lastId = 0

  constructor(clock: Pick<Clock, 'after'>, { founderOf = String, sharePercent = 50 }: AudioLengthsOptions = {}) {
    this.#clock = clock
    this.#founderOf = founderOf
    this.#places = new Shares(waitingMax, sharePercent)
  }

  /** Returns the length of a recording. Rejects with `places_taken`, which tells the caller to try again, or with the reason of the sender's signal. */
  async measure(
    recording: { readonly bytes: Buffer; readonly contentType: string; readonly filename: string },
    { orgId, signal }: Sender,
  ): Promise<MeasuredLength> {
    const { bytes, contentType, filename } = recording
    signal.throwIfAborted()
    const founder = this.#founderOf(orgId)
    const why = this.#places.take(founder)
    if (why !== null) throw notMeasured(why)
    const question = { id: ++this.#lastId, bytes, mimeType: /^(audio|video)\//.test(contentType) ? contentType : '', filename }
    let stop = (): void => undefined
    const length = new Promise<MeasuredLength>((resolve, reject) => {
      const waiting: Waiting = { question, answer: resolve, refuse: reject }
      const leave = (): void => this.#leave(founder, waiting, signal.reason)
      signal.addEventListener('abort', leave)
      const stopTimer = this.#clock.after(waitMaxMs, () => {
        if (this.#running?.recording !== waiting) this.#leave(founder, waiting, notMeasured('wait'))
      })
      stop = () => {
        stopTimer()
        signal.removeEventListener('abort', leave)
      }
      const others = this.#waiting.get(founder)
      if (others === undefined) this.#waiting.set(founder, new Set([waiting]))
      else others.add(waiting)
      this.#next()
    })
    try {
      return await length
    } finally {
      stop()
      this.#places.give(founder)
    }
  }

  #leave(founder: string, recording: Waiting, reason: unknown): void {
    const waiting = this.#waiting.get(founder)
    if (waiting?.delete(recording) && waiting.size === 0) this.#waiting.delete(founder)
    recording.refuse(reason)
  }

  /** Returns the next recording of the founder who has waited longest. That founder then goes to the end of the queue. */
  #takeNext(): Waiting | null {
    for (const [founder, waiting] of this.#waiting) {
      const [first] = waiting
      if (first === undefined) continue
      waiting.delete(first)
      this.#waiting.delete(founder)
      if (waiting.size > 0) this.#waiting.set(founder, waiting)
      return first
    }
    return null
  }

  #next(): void {
    if (this.#running !== null) return
    const recording = this.#takeNext()
    if (recording === null) return
    const worker = this.#thread()
    if (worker === null) {
      recording.answer(lengthBySize(recording.question.bytes.length))
      this.#next()
      return
    }
    const stopTimer = this.#clock.after(measureMaxMs, () => {
      this.#endThread()
      this.#settle(recording, ({ refuse }) => refuse(notMeasured('time')))
    })
    this.#running = { recording, stopTimer }
    // The bytes are copied into the message and not transferred, because the provider still has to receive them.
    worker.postMessage(recording.question)
  }

  #settle(recording: Waiting, end: (recording: Waiting) => void): void {
    if (this.#running?.recording !== recording) return
    this.#running.stopTimer()
    this.#running = null
    end(recording)
    this.#next()
  }

  #thread(): Worker | null {
    if (this.#worker !== null) return this.#worker
    const file = workerFile()
    if (file === null) return null
    const worker = new Worker(file, { stdout: false, stderr: false, resourceLimits: { maxOldGenerationSizeMb: threadMaxMb } })
    worker.unref()
    worker.on('message', ({ id, length }: LengthAnswer) => {
      const recording = this.#running?.recording
      if (recording?.question.id !== id) return
      const size = recording.question.bytes.length
      this.#settle(recording, ({ answer }) => answer(length === null ? lengthBySize(size) : believed(length, size)))
    })
    // When the thread ends, the current recording is refused, and the next one gets a new thread.
    const lost = (): void => {
      if (this.#worker !== worker) return
      this.#worker = null
      if (this.#running !== null) this.#settle(this.#running.recording, ({ refuse }) => refuse(notMeasured('time')))
    }
    worker.on('error', lost)
    worker.on('exit', lost)
    this.#worker = worker
    return worker
  }

  #endThread(): void {
    const worker = this.#worker
    this.#worker = null
    worker?.terminate().catch(() => undefined)
  }
}

const reasons: Readonly<Record<NoPlace | 'wait' | 'time', string>> = {
  share: 'Your organisation, with the others of its founder, has as many recordings waiting to be measured as it may. Send fewer at the same time.',
  total: 'This process has as many recordings waiting to be measured as it takes. Try again shortly.',
  wait: 'The recording waited too long to be measured. Try again shortly, with fewer recordings at the same time.',
  time: 'The recording could not be measured in time. Try again shortly, or send it as WAV, MP3 or FLAC, or in parts.',
}

/** Returns the refusal of a recording without a measured length. */
const notMeasured = (why: keyof typeof reasons): GatewayError =>
  fail('places_taken', { message: `${reasons[why]} No provider was called.`, retryAfterSeconds, extra: why === 'share' ? { scope: 'org' } : {} })

/** Returns the path of the compiled worker, which is in dist also when this file runs as TypeScript. Null when it is not built. */
function workerFile(): string | null {
  const here = new URL(import.meta.url)
  const file = fileURLToPath(new URL(here.pathname.endsWith('.ts') ? '../../../dist/platform/media/audio-length-worker.js' : './audio-length-worker.js', here))
  return existsSync(file) ? file : null
}
