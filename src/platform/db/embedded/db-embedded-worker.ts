/**
 * The thread that runs the embedded PostgreSQL (PGlite), so that a long query does not block the event loop of the process. It exchanges the PostgreSQL
 * protocol as messages of bytes. It is compiled to one JavaScript file in dist, so it must not import other files of the project.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { PGlite } from '@electric-sql/pglite'

/** How the thread starts. With `folder` null, the database is only in memory. `load` is a dumped data folder to start from. */
export interface WorkerStart {
  readonly folder: string | null
  readonly load: Uint8Array | null
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
 * Buffer memory for pages of tables. The process would keep the default of 128 MiB as long as it runs. Other pages come from the file cache of the
 * operating system.
 */
const startParams = [...PGlite.defaultStartParams, '-c', 'shared_buffers=32MB']

async function open(start: WorkerStart): Promise<PGlite> {
  return await PGlite.create({
    startParams,
    ...(start.folder === null ? {} : { dataDir: start.folder }),
    ...(start.load === null ? {} : { loadDataDir: new Blob([start.load as Uint8Array<ArrayBuffer>]) }),
  })
}

async function answer(database: PGlite, message: ToWorker): Promise<void> {
  if (message.kind === 'bytes') {
    const parts: Uint8Array[] = []
    // The bytes are in a buffer of the database that its next write overwrites, so they are copied immediately.
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
