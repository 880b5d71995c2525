/**
 * The load generator of the memory bench. It keeps running, so that its code is compiled when the measurement begins, and runs one job for each POST. A job
 * keeps `connections` calls running, one on each connection, for `warmupMs` and then `durationMs`. Only calls that end in the duration are measured. It
 * prints `listening <port>`.
 */
import { createServer } from 'node:http'
import { httpClient, sdkClient } from './memory-client.mjs'
import { bytesOf, keyOf, objectsOfRun } from './memory-workload.mjs'
import { percentilesOf } from './statistics.mjs'

async function run(job) {
  const client = job.store === undefined ? httpClient(job) : sdkClient(job.store)
  const cpuAtStart = process.cpuUsage()
  const startMs = performance.now()
  const fromMs = startMs + job.warmupMs
  const untilMs = fromMs + job.durationMs
  const latenciesMs = []
  let answered = 0
  let failed = 0
  let failure = null
  let made = 0

  const acts = {
    /** Reads existing objects, each with its whole content. */
    async get(number) {
      const bytes = await client.get(job.prefix + keyOf(number % objectsOfRun))
      if (bytes.length !== bytesOf(number).length) throw new Error(`${bytes.length} bytes`)
    },
    /** Writes a key that was never written before. */
    'put-new': number => client.put(`${job.prefix}${job.run}/${made++}`, bytesOf(number)),
    /** Writes a key that was written before. No two connections write the same key at the same time. */
    'put-over': number => client.put(job.prefix + keyOf(number % objectsOfRun), bytesOf(number)),
  }
  const act = acts[job.act]

  async function connection(_value, index) {
    for (let number = index; performance.now() < untilMs; number += job.connections) {
      const sentMs = performance.now()
      try {
        await act(number)
        answered += 1
        const nowMs = performance.now()
        if (nowMs >= fromMs && nowMs < untilMs) latenciesMs.push(nowMs - sentMs)
      } catch (error) {
        failed += 1
        failure ??= error.message
      }
    }
  }
  await Promise.all(Array.from({ length: job.connections }, connection))
  const cpu = process.cpuUsage(cpuAtStart)
  await client.close()
  return {
    answered,
    failed,
    failure,
    cpuMs: (cpu.user + cpu.system) / 1000,
    wallMs: performance.now() - startMs,
    callsPerS: (latenciesMs.length / job.durationMs) * 1000,
    latencyMs: percentilesOf(latenciesMs),
  }
}

/** Writes the objects that are read and overwritten. */
async function fill(job) {
  const client = job.store === undefined ? httpClient(job) : sdkClient(job.store)
  for (let number = 0; number < objectsOfRun; number++) await client.put(job.prefix + keyOf(number), bytesOf(number))
  await client.close()
  return { filled: objectsOfRun }
}

const server = createServer((request, response) => {
  const parts = []
  request.on('data', part => parts.push(part))
  request.on('end', () => {
    const job = JSON.parse(Buffer.concat(parts).toString('utf8'))
    const work = request.url === '/fill' ? fill(job) : run(job)
    work.then(
      result => response.end(JSON.stringify(result)),
      error => response.writeHead(500).end(error.message),
    )
  })
})
server.requestTimeout = 0
server.listen(0, '127.0.0.1', () => console.log(`listening ${server.address().port}`))
