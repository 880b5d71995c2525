/**
 * The thread that runs the embedded PostgreSQL (PGlite), so that a long query does not block the event loop of the process. It exchanges
 * the PostgreSQL protocol as messages of bytes. It runs from dist as plain JavaScript, so it imports no file of the project.
 */
import { readFileSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { PGlite } from '@electric-sql/pglite'

/**
 * How the thread starts. `folder`: null keeps everything in memory. `load`: a dumped data folder to start from. `archive`: path of a
 * compressed data folder to start from.
 */
export interface WorkerStart {
  readonly folder: string | null
  readonly load: Uint8Array | null
  readonly archive?: string
}

export type ToWorker = { readonly kind: 'bytes'; readonly bytes: Uint8Array } | { readonly kind: 'dump' } | { readonly kind: 'close' }

export type FromWorker =
  | { readonly kind: 'ready' }
  | { readonly kind: 'failed'; readonly message: string }
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'dumped'; readonly bytes: Uint8Array }
  | { readonly kind: 'closed' }

const port = parentPort

function send(message: FromWorker): void {
  if ('bytes' in message) port?.postMessage(message, [message.bytes.buffer as ArrayBuffer])
  else port?.postMessage(message)
}

/**
 * Memory for pages of tables. The default of 128 MiB would belong to this process as long as it runs. Pages beyond 32 MiB come from the
 * file cache of the operating system.
 */
const startParams = [...PGlite.defaultStartParams, '-c', 'shared_buffers=32MB']

async function open(start: WorkerStart): Promise<PGlite> {
  return await PGlite.create({
    startParams,
    ...(start.folder === null ? {} : { dataDir: start.folder }),
    ...(start.archive === undefined ? {} : { loadDataDir: new Blob([readFileSync(start.archive)], { type: 'application/x-gzip' }) }),
    ...(start.load === null ? {} : { loadDataDir: new Blob([start.load as Uint8Array<ArrayBuffer>]) }),
  })
}

async function answer(database: PGlite, message: ToWorker): Promise<void> {
  if (message.kind === 'bytes') {
    const parts: Uint8Array[] = []
    // The bytes are in the memory of the database and the next write overwrites them, so they are copied immediately.
    await database.execProtocolRawStream(message.bytes, { syncToFs: false, onRawData: bytes => parts.push(bytes.slice()) })
    const reply = Buffer.concat(parts)
    send({ kind: 'bytes', bytes: new Uint8Array(reply) })
    return
  }
  if (message.kind === 'dump') {
    const file = await database.dumpDataDir('none')
    send({ kind: 'dumped', bytes: new Uint8Array(await file.arrayBuffer()) })
    return
  }
  await database.close()
  send({ kind: 'closed' })
  port?.close()
}

try {
  const database = await open(workerData as WorkerStart)
  // Messages are handled one after the other: the reply to one is sent before the next one is read.
  let last: Promise<void> = Promise.resolve()
  port?.on('message', (message: ToWorker) => {
    last = last.then(() => answer(database, message))
    last.catch((error: unknown) => {
      send({ kind: 'failed', message: String(error) })
      port?.close()
    })
  })
  send({ kind: 'ready' })
} catch (error) {
  send({ kind: 'failed', message: error instanceof Error ? error.message : String(error) })
  port?.close()
}
