/**
 * Measures how long recordings last, in a thread of its own: files of strangers can keep a parser busy for long, and whoever started this
 * thread ends it then.
 */
import { parentPort } from 'node:worker_threads'
import { parseBuffer } from 'music-metadata'
import { countSound } from './sound/counted.ts'

export interface LengthQuestion {
  readonly id: number
  readonly bytes: Uint8Array
  readonly mimeType: string
  readonly filename: string
}

export interface ReadLength {
  readonly seconds: number
  /** Sound alone, in a form that has few bytes a second. */
  readonly isCompact: boolean
  /** False: it is what a header says, which its sender may have written. */
  readonly isCounted: boolean
}

export interface LengthAnswer {
  readonly id: number
  /** Null: it could not be read. */
  readonly length: ReadLength | null
}

parentPort?.on('message', ({ id, ...recording }: LengthQuestion) => {
  lengthOf(recording).then(
    length => parentPort?.postMessage({ id, length } satisfies LengthAnswer),
    () => parentPort?.postMessage({ id, length: null } satisfies LengthAnswer),
  )
})

/** A recording is what its bytes say; what its sender calls it is asked only when they say nothing. */
async function lengthOf({ bytes, mimeType, filename }: Omit<LengthQuestion, 'id'>): Promise<ReadLength | null> {
  const counted = countSound(bytes)
  if (counted !== null) return { ...counted, isCounted: true }
  const called = { ...(mimeType === '' ? {} : { mimeType }), ...(filename === '' ? {} : { path: filename }) }
  return (await lengthInHeaders(bytes, {})) ?? (await lengthInHeaders(bytes, called))
}

async function lengthInHeaders(bytes: Uint8Array, called: { readonly mimeType?: string; readonly path?: string }): Promise<ReadLength | null> {
  try {
    const { format } = await parseBuffer(bytes, { size: bytes.byteLength, ...called }, { duration: true, skipCovers: true, skipPostHeaders: true })
    const seconds = format.duration
    return seconds === undefined || !Number.isFinite(seconds) || seconds <= 0 ? null : { seconds, isCompact: false, isCounted: false }
  } catch {
    return null
  }
}
