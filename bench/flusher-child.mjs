/**
 * A whole gateway without a port, for `bench:flusher`: `node flusher-child.mjs <dist> flush|leave|adopt <events> <callers>`. `flush` writes a journal and
 * measures its flush into the database. `leave` writes a journal and exits as if killed. `adopt` measures a start that finds such a journal. It prints one
 * line of JSON to stdout.
 */
import { randomBytes } from 'node:crypto'
import { writeSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const [dist, verb, eventCount, callerCount] = process.argv.slice(2)
const count = Number(eventCount)
const callers = Number(callerCount)
const part = name => import(pathToFileURL(join(dist, name)))

const { createApp } = await part('composition/gateway.js')
const { openFoundation } = await part('composition/foundation.js')
const { statement } = await part('platform/db/db.js')
const { loadConfig } = await part('platform/config.js')
const { systemClock } = await part('platform/clock.js')
const { systemIds } = await part('platform/values/ids.js')
const { makeLog } = await part('platform/observe/log.js')
const { Flusher } = await part('gateway/limits/journal/flusher.js')

async function startApp() {
  const config = loadConfig()
  const log = makeLog('error')
  const foundation = await openFoundation(config, systemClock, log)
  const app = await createApp({ config, clock: systemClock, ids: systemIds, log, ...foundation })
  return { app, db: foundation.db }
}

const countEvents = statement('bench.count_events', 'select count(*)::int as "events" from usage_events')

/** Throws when an event is missing in the database, because the measured rate would then be wrong. */
async function checkArrived(db) {
  const { events } = await db.one(countEvents)
  if (events !== count) throw new Error(`${events} of ${count} events are in the database`)
}

/** Returns the flusher. The app does not expose it, so this function replaces its method and catches the object when a flush is requested. */
async function flusherOf(app) {
  let found = null
  const { flushNow } = Flusher.prototype
  Flusher.prototype.flushNow = function caught() {
    found = this
    return flushNow.call(this)
  }
  await app.limits.flushNow()
  Flusher.prototype.flushNow = flushNow
  return found
}

const india = new Date(Date.now() + 5.5 * 3600_000)
const month = india.toISOString().slice(0, 7)
const monthEndsAtMs = Date.UTC(india.getUTCFullYear(), india.getUTCMonth() + 1, 1) - 5.5 * 3600_000

/** Returns the ids that all calls of one caller have in common: organisation (one for ten callers), key, member, and for every second caller an agent. */
function callerOf(index) {
  const [orgId, keyId, userId, agentId] = [1 + Math.floor(index / 10), 1 + index, 1 + index, index % 2 === 0 ? 1 + index : null]
  const scopes = [
    ['key', String(keyId)],
    ['member', String(userId)],
    ['org', String(orgId)],
  ]
  if (agentId !== null) scopes.unshift(['agent', String(agentId)])
  return { charge: { orgId, month, monthEndsAtMs, scopes }, orgId, keyId, userId, agentId }
}

function uuidv7(ms) {
  const bytes = randomBytes(16)
  bytes.writeUIntBE(ms, 0, 6)
  bytes[6] = (bytes[6] & 0x0f) | 0x70
  bytes[8] = (bytes[8] & 0x3f) | 0x80
  const text = bytes.toString('hex')
  return [text.slice(0, 8), text.slice(8, 12), text.slice(12, 16), text.slice(16, 20), text.slice(20)].join('-')
}

/** Returns the records of one call: opened, then settled. */
function recordsOf(index, { charge, orgId, keyId, userId, agentId }) {
  const atMs = Date.now()
  const id = uuidv7(atMs)
  const provider = index % 3 === 0 ? 'groq' : 'sarvam'
  const draft = {
    id,
    atMs,
    requestId: `req_${id.slice(0, 23)}`,
    orgId,
    userId,
    keyId,
    workspaceId: null,
    agentId,
    agentLabel: null,
    kind: 'chat',
    model: `bench-${index % 4}`,
    provider,
    residency: provider === 'groq' ? 'global' : 'india',
    streamed: true,
    byok: false,
    status: 200,
    outcome: 'ok',
    promptTokens: 400,
    completionTokens: 0,
    cachedTokens: 0,
    cacheWriteTokens: 0,
    reasoningTokens: 0,
    images: 0,
    audioSeconds: 0,
    characters: 0,
    estimated: false,
    valueUinr: 900n,
    costUinr: 900n,
    latencyMs: 0,
    firstByteMs: null,
  }
  const event = { ...draft, completionTokens: 300, valueUinr: 12_900n, costUinr: 12_900n, latencyMs: 800 + (index % 5000), firstByteMs: 200 }
  return [
    { kind: 'open', event: draft, charge, counts: [] },
    { kind: 'settle', event, charge, counts: [], released: [] },
  ]
}

/** Writes the whole journal in one turn of the event loop, so that no flush begins before it is complete. */
function writeJournal(flusher) {
  const all = Array.from({ length: callers }, (_, index) => callerOf(index))
  for (let i = 0; i < count; i++) for (const record of recordsOf(i, all[i % callers])) flusher.append(record)
  return flusher.unflushedBytes
}

const answer = value => writeSync(1, `${JSON.stringify(value)}\n`)

if (verb === 'leave') {
  const { app } = await startApp()
  const flusher = await flusherOf(app)
  const bytes = writeJournal(flusher)
  answer({ bytes })
  // Leaves the same state as kill -9: the row of the process is still marked as running, nothing is flushed, and its socket refuses connections.
  process.reallyExit(0)
} else if (verb === 'flush') {
  const { app, db } = await startApp()
  const flusher = await flusherOf(app)
  const bytes = writeJournal(flusher)
  const beganMs = performance.now()
  await flusher.flushNow()
  const ms = performance.now() - beganMs
  await checkArrived(db)
  answer({ bytes, ms, eventsPerS: (count * 1000) / ms })
  await app.stop()
} else {
  // The measured time includes the start itself, which takes about a second.
  const beganMs = performance.now()
  const { app, db } = await startApp()
  const ms = performance.now() - beganMs
  await checkArrived(db)
  answer({ ms, eventsPerS: (count * 1000) / ms })
  await app.stop()
}
