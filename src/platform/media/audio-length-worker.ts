/**
 * Measures the length of recordings in a thread of its own. A file from a user can keep a parser busy for a long time. The main thread then ends the
 * worker.
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
  /** True for a file that contains only sound, in a format with few bytes a second. */
  readonly isCompact: boolean
  /** False: the length comes from a header, which the sender may have invented. */
  readonly isCounted: boolean
}

export interface LengthAnswer {
  readonly id: number
  /** Null when the length could not be read. */
  readonly length: ReadLength | null
}

parentPort?.on('message', ({ id, ...recording }: LengthQuestion) => {
  lengthOf(recording).then(
    length => parentPort?.postMessage({ id, length } satisfies LengthAnswer),
    () => parentPort?.postMessage({ id, length: null } satisfies LengthAnswer),
  )
})

/** Measures by the content of the file. The name and type from the sender are used only when the content is not recognised. */
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
