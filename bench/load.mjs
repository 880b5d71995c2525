/**
 * The load generator. `node load.mjs <job as JSON>` keeps `connections` calls running, one on each connection, for `warmupMs` and then `durationMs`. Then
 * it waits for the running calls, and prints one line of JSON. Only calls that end (or chunks that arrive) after the warm-up and within the duration are
 * measured. With `once`, every connection makes one call, and the whole call is measured.
 */
import { Pool } from 'undici'
import { percentilesOf } from './statistics.mjs'

const job = JSON.parse(process.argv[2])
const pool = new Pool(job.url, { connections: job.connections, pipelining: 1, bodyTimeout: 60_000, headersTimeout: 60_000 })
const request = { path: job.path ?? '/v1/chat/completions', method: 'POST', headers: { ...job.headers, 'content-type': 'application/json' }, body: job.body }

/** The last bytes of a complete stream: in the chat format, and in the messages format. */
const endMarks = ['data: [DONE]', 'event: message_stop']

const cpuAtStart = process.cpuUsage()
const startMs = performance.now()
const fromMs = job.once ? startMs : startMs + job.warmupMs
const untilMs = job.once ? Number.POSITIVE_INFINITY : fromMs + job.durationMs
const latenciesMs = []
const firstBytesMs = []
const gapsMs = []
let answered = 0
let failed = 0
let chunks = 0
let failure = null
let open = 0
let openMax = 0

/**
 * One call, from the first byte that it sends to the last byte that it receives. A reply that is too short, broken or not 200 counts as a failure, never as
 * a fast call.
 */
class Call {
  #startMs = performance.now()
  #lastMs = 0
  #status = 0
  #bytes = 0
  #chunks = 0
  #endsWithNewline = false
  #tail = Buffer.alloc(0)
  #done

  constructor(done) {
    this.#done = done
  }

  onRequestStart() {}

  onResponseStart(_controller, status) {
    this.#status = status
  }

  onResponseData(_controller, data) {
    this.#bytes += data.length
    if (!job.isStream) return
    const nowMs = performance.now()
    if (this.#lastMs === 0) {
      open += 1
      openMax = Math.max(openMax, open)
      if (nowMs >= fromMs && nowMs < untilMs) firstBytesMs.push(nowMs - this.#startMs)
    } else if (job.once) gapsMs.push(nowMs - this.#lastMs)
    this.#lastMs = nowMs
    const found = this.#eventEnds(data)
    this.#chunks += found
    if (nowMs >= fromMs && nowMs < untilMs) chunks += found
    this.#tail = data.length >= 32 ? data : Buffer.concat([this.#tail, data])
  }

  onResponseEnd() {
    const nowMs = performance.now()
    if (this.#lastMs !== 0) open -= 1
    const isWhole = job.isStream ? this.#chunks >= job.chunksMin && endMarks.some(mark => this.#tail.includes(mark)) : this.#bytes >= job.bytesMin
    if (this.#status !== 200 || !isWhole) return this.#fail(`status ${this.#status}, ${this.#bytes} bytes, ${this.#chunks} chunks`)
    answered += 1
    if (nowMs >= fromMs && nowMs < untilMs) latenciesMs.push(nowMs - this.#startMs)
    this.#done()
  }

  onResponseError(_controller, error) {
    if (this.#lastMs !== 0) open -= 1
    this.#fail(error.message)
  }

  #fail(why) {
    failed += 1
    failure ??= why
    this.#done()
  }

  /** Counts the events in the data by their blank lines. The two line breaks may be in different reads. */
  #eventEnds(data) {
    let found = 0
    let at = 0
    if (this.#endsWithNewline && data[0] === 10) {
      found = 1
      at = 1
    }
    for (at = data.indexOf('\n\n', at); at !== -1; at = data.indexOf('\n\n', at + 2)) found += 1
    this.#endsWithNewline = data.at(-1) === 10 && data.at(-2) !== 10
    return found
  }
}

const call = () => new Promise(done => pool.dispatch(request, new Call(done)))

async function connection() {
  do await call()
  while (!job.once && performance.now() < untilMs)
}

await Promise.all(Array.from({ length: job.connections }, connection))
const elapsedMs = job.once ? performance.now() - startMs : job.durationMs
const cpu = process.cpuUsage(cpuAtStart)
const result = {
  answered,
  failed,
  failure,
  cpuMs: (cpu.user + cpu.system) / 1000,
  wallMs: performance.now() - startMs,
  callsPerS: (latenciesMs.length / elapsedMs) * 1000,
  latencyMs: percentilesOf(latenciesMs),
  ...(job.isStream ? { chunksPerS: (chunks / elapsedMs) * 1000, firstByteMs: percentilesOf(firstBytesMs) } : {}),
  ...(job.once ? { gapMs: percentilesOf(gapsMs), openMax } : {}),
}
console.log(JSON.stringify(result))
await pool.destroy()
