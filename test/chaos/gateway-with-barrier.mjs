/**
 * A gateway like dist/main.js whose journal and database are wrapped. It kills itself, as kill -9 does, at the point that a file names. The product
 * does not know about this: disk and database are passed in. With WORKERS above 1, this process is the supervisor, and each worker is such a gateway
 * (decision 0545).
 *
 * A process that serves writes its id in the table of processes to the file CHAOS_FOLDER/<pid>. On SIGUSR2 it reads its barrier from the file
 * CHAOS_FOLDER/<pid>.barrier: {"at":"settle","side":"torn","nth":3}.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ownFile = join(process.env.CHAOS_FOLDER, String(process.pid))
let barrier = null
process.on('SIGUSR2', () => {
  barrier = JSON.parse(readFileSync(`${ownFile}.barrier`, 'utf8'))
})

const dist = new URL('../../dist/', import.meta.url)
const part = name => import(new URL(name, dist).href)
const [{ startGateway }, { openFoundation }, { loadConfig }, { systemClock }, { makeLog }, { machineDisk }, { Supervisor }, { WorkerChannel }] =
  await Promise.all(
    [
      'composition/serve.js',
      'composition/foundation.js',
      'platform/config.js',
      'platform/clock.js',
      'platform/observe/log.js',
      'gateway/limits/journal/journal-disk.js',
      'operations/workers/supervisor.js',
      'operations/workers/worker.js',
    ].map(part),
  )

/** True when this is the point at which the process has to die. */
const isHere = (at, side) => barrier !== null && barrier.at === at && barrier.side === side && --barrier.nth <= 0

/** Never returns. */
function die() {
  process.kill(process.pid, 'SIGKILL')
  for (;;);
}

const kindOfByte = { 2: 'open', 3: 'progress', 4: 'settle' }

/** The kinds of the records in what is written: each has its length before it, and is JSON or begins with a byte for its kind. */
function kindsIn(bytes) {
  const kinds = new Set()
  const buffer = Buffer.from(bytes)
  for (let at = 0; at < buffer.length; at += 8 + buffer.readUInt32LE(at)) {
    const start = at + 8
    const kind = kindOfByte[buffer[start]] ?? /^\{"kind":"([a-z]+)"/.exec(buffer.toString('latin1', start, start + 30))?.[1]
    if (kind !== undefined) kinds.add(kind)
  }
  return [...kinds]
}

const journalDisk = {
  ...machineDisk,
  append(fd, bytes) {
    const kinds = barrier === null ? [] : kindsIn(bytes)
    if (kinds.some(kind => isHere(kind, 'before'))) die()
    if (kinds.some(kind => isHere(kind, 'torn'))) {
      machineDisk.append(fd, bytes.subarray(0, bytes.length >> 1))
      die()
    }
    const written = machineDisk.append(fd, bytes)
    if (kinds.some(kind => isHere(kind, 'after'))) die()
    return written
  },
}

/** Transactions that move the offset of a journal are flushes; those that return all leases close an adoption. */
const kindOfTransaction = { 'limits.advance_flush': 'flush', 'limits.return_all_leases': 'adopt' }

function guarded(db) {
  return new Proxy(db, {
    get(target, name) {
      // Without an address the flush thread uses this database, so that its transactions have the barriers too. A worker keeps the address:
      // its flush thread has a connection of its own, as in the product, and its flushes have no barriers.
      if (name === 'address' && !isWorker) return undefined
      const value = Reflect.get(target, name, target)
      if (typeof value !== 'function') return value
      if (name === 'tx') return fn => transaction(target, fn)
      if (name !== 'many') return value.bind(target)
      return async (statement, ...params) => {
        const isAcquire = statement.name === 'limits.acquire'
        if (isAcquire && isHere('acquire', 'before')) die()
        const rows = await target.many(statement, ...params)
        if (isAcquire && isHere('acquire', 'after')) die()
        return rows
      }
    },
  })
}

async function transaction(db, fn) {
  let kind = null
  const value = await db.tx(async tx => {
    const watched = new Proxy(tx, {
      get: (target, name) =>
        name === 'exec'
          ? (statement, ...params) => {
              kind = kindOfTransaction[statement.name] ?? kind
              return target.exec(statement, ...params)
            }
          : Reflect.get(target, name, target),
    })
    const made = await fn(watched)
    if (kind !== null && isHere(kind, 'before')) die()
    return made
  })
  if (kind !== null && isHere(kind, 'after')) die()
  return value
}

const workerWord = '--worker'
const isWorker = process.argv.includes(workerWord)
const config = loadConfig()
const log = makeLog(config.LOG_LEVEL)

/** Starts a gateway in this process, behind the port of the supervisor when there is one. */
async function serve(channel) {
  const foundation = await openFoundation(config, systemClock, log)
  const options = { log, foundation: { ...foundation, db: guarded(foundation.db) }, journalDisk }
  const gateway = await startGateway(config, channel === null ? options : { ...options, workers: channel })
  const stop = () => void gateway.stop().then(() => process.exit(0))
  process.once('SIGTERM', stop)
  const started = `listens on ${gateway.baseUrl}\n`
  if (channel === null) process.stdout.write(started)
  else channel.ready(started, stop)
  // A reader never sees half of the file.
  writeFileSync(`${ownFile}.new`, String(gateway.app.limits.processId))
  renameSync(`${ownFile}.new`, ownFile)
}

async function supervise() {
  const supervisor = new Supervisor({
    count: Number(config.WORKERS),
    clock: systemClock,
    log,
    drainMs: config.DRAIN_MS,
    host: config.HOST,
    port: config.PORT,
    program: [fileURLToPath(import.meta.url), workerWord],
    print: text => process.stdout.write(text),
  })
  process.once('SIGTERM', () => void supervisor.stop().then(() => process.exit(0)))
  await supervisor.start()
}

if (isWorker) {
  // The test kills the supervisor at its end, and then no worker may continue.
  process.once('disconnect', die)
  await serve(new WorkerChannel(systemClock, Number(process.argv.at(-1))))
} else if (config.WORKERS === '1') await serve(null)
else await supervise()
