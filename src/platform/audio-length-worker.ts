/**
 * Reads how long recordings last, in a thread of its own: files of strangers can keep a parser busy for long, and whoever started this
 * thread ends it then.
 */
import { parentPort } from 'node:worker_threads'
import { parseBuffer } from 'music-metadata'

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

parentPort?.on('message', ({ id, bytes, mimeType, filename }: LengthQuestion) => {
  const info = { size: bytes.byteLength, ...(mimeType === '' ? {} : { mimeType }), ...(filename === '' ? {} : { path: filename }) }
  parseBuffer(bytes, info, { duration: true, skipCovers: true, skipPostHeaders: true }).then(
    ({ format }) => {
      const seconds = format.duration
      const answer: LengthAnswer = { id, seconds: seconds !== undefined && Number.isFinite(seconds) && seconds > 0 ? seconds : null }
      parentPort?.postMessage(answer)
    },
    () => parentPort?.postMessage({ id, seconds: null } satisfies LengthAnswer),
  )
})
