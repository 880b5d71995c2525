/**
 * Reads how long recordings last, in a thread of its own: files of strangers can keep a parser busy for long, and whoever started this
 * thread ends it then.
 */
import { parentPort } from 'node:worker_threads'
import { parseBuffer } from 'music-metadata'
import { webmSeconds } from './webm-length.ts'

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
}

export interface LengthAnswer {
  readonly id: number
  /** Null: it could not be read. */
  readonly length: ReadLength | null
}

/** Codecs that give up what nobody hears. */
const compactCodecs = /layer 3|aac|opus|vorbis/i

parentPort?.on('message', ({ id, ...recording }: LengthQuestion) => {
  lengthOf(recording).then(
    length => parentPort?.postMessage({ id, length } satisfies LengthAnswer),
    () => parentPort?.postMessage({ id, length: null } satisfies LengthAnswer),
  )
})

/** A recording is what its bytes say; what its sender calls it is asked only when they say nothing. */
async function lengthOf({ bytes, mimeType, filename }: Omit<LengthQuestion, 'id'>): Promise<ReadLength | null> {
  const called = { ...(mimeType === '' ? {} : { mimeType }), ...(filename === '' ? {} : { path: filename }) }
  return (await lengthInHeaders(bytes, {})) ?? lengthOfBlocks(bytes) ?? (await lengthInHeaders(bytes, called))
}

async function lengthInHeaders(bytes: Uint8Array, called: { readonly mimeType?: string; readonly path?: string }): Promise<ReadLength | null> {
  try {
    const { format } = await parseBuffer(bytes, { size: bytes.byteLength, ...called }, { duration: true, skipCovers: true, skipPostHeaders: true })
    const seconds = format.duration
    if (seconds === undefined || !Number.isFinite(seconds) || seconds <= 0) return null
    return { seconds, isCompact: format.hasVideo !== true && compactCodecs.test(format.codec ?? '') }
  } catch {
    return null
  }
}

function lengthOfBlocks(bytes: Uint8Array): ReadLength | null {
  const seconds = webmSeconds(bytes)
  return seconds === null ? null : { seconds, isCompact: false }
}
