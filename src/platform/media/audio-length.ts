import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import type { Clock } from '../clock.ts'
import type { LengthAnswer, LengthQuestion, ReadLength } from './audio-length-worker.ts'

/** How long one recording may take to measure, waiting for those before it included. */
const measureMaxMs = 2000
/** Most recordings that wait; further ones are estimated. */
const waitingMax = 16
/** Memory of the measuring thread, beside the recording itself. */
const threadMaxMb = 64
/** Longest recording that is believed: a day. */
const secondsMax = 86_400
/** Sound that is not compressed at all has at most so many bytes a second (96 kHz, stereo, 32 bits): a recording lasts at least that long. */
const bytesPerSecondMax = 768_000
/** The same for MP3, AAC, Opus and Vorbis: 512 kbit/s. */
const compactBytesPerSecondMax = 64_000
/** By so much sums of parts of a second may be off. */
const roundingSeconds = 1e-5
/** Bytes a second that a recording is taken for whose length cannot be read: speech at 32 kbit/s. Decision 0170 says why. */
export const assumedBytesPerSecond = 4000

export interface MeasuredLength {
  /** Whole seconds, each begun one counted; at least 1. */
  readonly seconds: number
  /** False: the sound could not be counted. Its size was taken for its length, or its header, which said more. */
  readonly isRead: boolean
}

/** How long a recording is taken to last by its size alone. */
export function lengthBySize(bytes: number): MeasuredLength {
  return { seconds: Math.min(secondsMax, Math.max(1, Math.ceil(bytes / assumedBytesPerSecond))), isRead: false }
}

/**
 * What was counted, when a recording of that size can last so short; a day at most. Where only a header speaks, which its sender may have written, the
 * size counts at least.
 */
function believed({ seconds, isCompact, isCounted }: ReadLength, size: number): MeasuredLength {
  if (!isCounted) {
    const bySize = lengthBySize(size)
    return seconds <= bySize.seconds ? bySize : { seconds: Math.ceil(Math.min(seconds, secondsMax)), isRead: false }
  }
  const least = size / (isCompact ? compactBytesPerSecondMax : bytesPerSecondMax)
  const longest = Math.max(Math.min(seconds, secondsMax), least)
  return { seconds: Math.max(1, Math.ceil(longest - roundingSeconds)), isRead: true }
}

interface Waiting {
  readonly question: LengthQuestion
  readonly size: number
  readonly stopTimer: () => void
  answer(length: MeasuredLength): void
}

/**
 * Measures recordings in one thread, one after the other. The thread is started with the first of them; one that takes too long, or
 * too much memory, loses its thread, and its length is taken by its size.
 */
export class AudioLengths {
  readonly #clock: Pick<Clock, 'after'>
  readonly #waiting = new Map<number, Waiting>()
  #worker: Worker | null = null
  #running: number | null = null
  #lastId = 0

  constructor(clock: Pick<Clock, 'after'>) {
    this.#clock = clock
  }

  /** Never throws. */
  measure(recording: { readonly bytes: Buffer; readonly contentType: string; readonly filename: string }): Promise<MeasuredLength> {
    const { bytes, contentType, filename } = recording
    if (this.#waiting.size >= waitingMax) return Promise.resolve(lengthBySize(bytes.length))
    const id = ++this.#lastId
    return new Promise(resolve => {
      const stopTimer = this.#clock.after(measureMaxMs, () => {
        if (this.#running === id) this.#endThread()
        this.#settle(id, null)
      })
      this.#waiting.set(id, {
        question: { id, bytes, mimeType: contentType.startsWith('audio/') || contentType.startsWith('video/') ? contentType : '', filename },
        size: bytes.length,
        stopTimer,
        answer: resolve,
      })
      this.#next()
    })
  }

  #next(): void {
    if (this.#running !== null) return
    const [first] = this.#waiting.values()
    if (first === undefined) return
    const worker = this.#thread()
    if (worker === null) {
      this.#settle(first.question.id, null)
      return
    }
    this.#running = first.question.id
    // Copied on the way: the recording is also what the provider gets.
    worker.postMessage(first.question)
  }

  #settle(id: number, length: ReadLength | null): void {
    const waiting = this.#waiting.get(id)
    if (waiting !== undefined) {
      this.#waiting.delete(id)
      waiting.stopTimer()
      const { size } = waiting
      waiting.answer(length === null ? lengthBySize(size) : believed(length, size))
    }
    if (this.#running === id) this.#running = null
    this.#next()
  }

  #thread(): Worker | null {
    if (this.#worker !== null) return this.#worker
    const file = workerFile()
    if (file === null) return null
    const worker = new Worker(file, { stdout: false, stderr: false, resourceLimits: { maxOldGenerationSizeMb: threadMaxMb } })
    worker.unref()
    worker.on('message', ({ id, length }: LengthAnswer) => this.#settle(id, length))
    // What ends the thread ends the measuring that it was at; the next one gets a new thread.
    const lost = (): void => {
      if (this.#worker !== worker) return
      this.#worker = null
      if (this.#running !== null) this.#settle(this.#running, null)
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

/** The worker as JavaScript: beside this file in dist, and in dist too when this file runs as TypeScript. Null: it is not built. */
function workerFile(): string | null {
  const here = new URL(import.meta.url)
  const file = fileURLToPath(new URL(here.pathname.endsWith('.ts') ? '../../../dist/platform/media/audio-length-worker.js' : './audio-length-worker.js', here))
  return existsSync(file) ? file : null
}
