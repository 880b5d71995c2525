/**
 * A gateway like dist/main.js whose journal and database are wrapped: it kills itself, as kill -9 does, at the point that a line on its
 * standard input names: {"at":"settle","side":"torn","nth":3}. The product knows nothing of it: disk and database are handed in.
 */
import { createInterface } from 'node:readline'

const dist = new URL('../../dist/', import.meta.url)
const part = name => import(new URL(name, dist).href)
const [{ startGateway }, { openFoundation }, { loadConfig }, { systemClock }, { makeLog }, { machineDisk }] = await Promise.all(
  [
    'composition/serve.js',
    'composition/foundation.js',
    'platform/config.js',
    'platform/clock.js',
    'platform/observe/log.js',
    'gateway/limits/journal/journal-disk.js',
  ].map(part),
)

let barrier = null
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
      // Without an address the flush thread uses this database, so that its transactions have the barriers too.
      if (name === 'address') return undefined
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

const config = loadConfig()
const log = makeLog(config.LOG_LEVEL)
const foundation = await openFoundation(config, systemClock, log)
const gateway = await startGateway(config, { log, foundation: { ...foundation, db: guarded(foundation.db) }, journalDisk })
createInterface({ input: process.stdin }).on('line', line => {
  barrier = JSON.parse(line)
})
process.once('SIGTERM', () => void gateway.stop().then(() => process.exit(0)))
process.stdout.write(`listens on ${gateway.baseUrl}\n`)
