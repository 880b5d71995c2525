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

export interface LengthAnswer {
  readonly id: number
  /** Null: it could not be read. */
  readonly seconds: number | null
}

parentPort?.on('message', ({ id, ...recording }: LengthQuestion) => {
  secondsOf(recording).then(
    seconds => parentPort?.postMessage({ id, seconds } satisfies LengthAnswer),
    () => parentPort?.postMessage({ id, seconds: null } satisfies LengthAnswer),
  )
})

/** A recording is what its bytes say; what its sender calls it is asked only when they say nothing. */
async function secondsOf({ bytes, mimeType, filename }: Omit<LengthQuestion, 'id'>): Promise<number | null> {
  const called = { ...(mimeType === '' ? {} : { mimeType }), ...(filename === '' ? {} : { path: filename }) }
  return (await headerSeconds(bytes, {})) ?? webmSeconds(bytes) ?? (await headerSeconds(bytes, called))
}

async function headerSeconds(bytes: Uint8Array, called: { readonly mimeType?: string; readonly path?: string }): Promise<number | null> {
  try {
    const { format } = await parseBuffer(bytes, { size: bytes.byteLength, ...called }, { duration: true, skipCovers: true, skipPostHeaders: true })
    const seconds = format.duration
    return seconds !== undefined && Number.isFinite(seconds) && seconds > 0 ? seconds : null
  } catch {
    return null
  }
}
