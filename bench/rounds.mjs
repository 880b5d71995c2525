/** Measures scenarios on gateways: figures of the load, processor time, memory, delay of the event loop and garbage. */
import { join } from 'node:path'
import { root } from '../scripts/paths.mjs'
import { core, cpuMsOf, mainThreadCpuMsOf, rssMibOf, runToEnd } from './child.mjs'
import { chunksOfStream } from './workload.mjs'

/** Number of chunks of a slow stream. */
export const slowChunks = 20

const sampleIntervalMs = 200
const bytesOfKib = 1024

/** Returns the path of a program of the bench. */
export const program = name => join(root, 'bench', name)

/** Writes a line of progress to stderr. */
export const say = text => process.stderr.write(`${text}\n`)

/**
 * Runs one scenario on one gateway. Returns the report of the load generator, and the gateway's memory, processor time, delay of the event loop and garbage
 * during the run.
 */
export async function measure(gateway, upstream, scenario, { durationMs, warmupMs }) {
  const job = {
    ...scenario,
    url: gateway.url,
    headers: gateway.headers,
    durationMs,
    warmupMs,
    bytesMin: 1000,
    chunksMin: scenario.once ? slowChunks : chunksOfStream,
  }
  let rssPeakMib = rssMibOf(gateway.pid)
  const timer = setInterval(() => {
    const rssMib = rssMibOf(gateway.pid)
    if (rssMib !== null && rssMib > rssPeakMib) rssPeakMib = rssMib
  }, sampleIntervalMs)
  const cpuBefore = [gateway, upstream].map(({ pid }) => cpuMsOf(pid))
  const mainCpuBefore = mainThreadCpuMsOf(gateway.pid)
  await gateway.probe?.('reset')
  const garbageBefore = gateway.garbageBytes?.() ?? null
  try {
    const result = JSON.parse(await runToEnd(core.load, [program('load.mjs'), JSON.stringify(job)]))
    const [cpuMs, upstreamCpuMs] = [gateway, upstream].map(({ pid }, index) => (cpuBefore[index] === null ? null : cpuMsOf(pid) - cpuBefore[index]))
    const calls = Math.max(1, result.answered)
    gateway.answered += result.answered
    if (result.failed > 0) gateway.failures.push(`${scenario.name}: ${result.failed} calls failed, the first with: ${result.failure}`)
    const cpu =
      cpuMs === null
        ? {}
        : {
            cpuUsOfCall: (cpuMs * 1000) / calls,
            mainThreadCpuUsOfCall: ((mainThreadCpuMsOf(gateway.pid) - mainCpuBefore) * 1000) / calls,
            gatewayBusy: cpuMs / result.wallMs,
            loadBusy: (result.cpuMs + upstreamCpuMs) / result.wallMs,
          }
    const loop = (await gateway.probe?.('read')) ?? {}
    const garbage = garbageBefore === null ? {} : { garbageKibOfCall: (gateway.garbageBytes() - garbageBefore) / bytesOfKib / calls }
    return { ...result, ...cpu, ...loop, ...garbage, rssPeakMib }
  } finally {
    clearInterval(timer)
  }
}

/** Returns whether a gateway supports a scenario. */
const isOffered = ({ lacks }, { name }) => !lacks.some(prefix => name.startsWith(prefix))

/**
 * Warms every gateway up until its code is compiled. Every gateway gets the same number of calls. With the same time instead, the code of a slow gateway
 * would be only partly compiled. `warmupMaxMs` limits the time on a busy machine.
 */
export async function warmUp(gateways, upstream, scenarios, { warmupCalls, warmupMaxMs }) {
  for (const gateway of gateways) {
    say(`warm-up: ${gateway.title}`)
    for (const scenario of scenarios.filter(({ once }) => !once)) {
      if (!isOffered(gateway, scenario)) continue
      const before = gateway.answered
      const deadlineMs = performance.now() + warmupMaxMs
      do await measure(gateway, upstream, scenario, { durationMs: 500, warmupMs: 0 })
      while (gateway.answered - before < warmupCalls && performance.now() < deadlineMs)
    }
  }
}

/**
 * Runs the rounds. Every round measures all contenders in each scenario, so that other work on the machine affects all of them. With `isReversing`, every
 * second round has the opposite order, so that a contender does not always run after the same other one.
 */
export async function runRounds(gateways, upstream, scenarios, options) {
  for (let round = 1; round <= options.rounds; round++) {
    for (const scenario of scenarios) {
      // Slow streams take the same time with every gateway, so fewer rounds are enough.
      if (scenario.once && round > options.slowRounds) continue
      const offering = gateways.filter(gateway => isOffered(gateway, scenario))
      for (const gateway of options.isReversing && round % 2 === 0 ? offering.toReversed() : offering) {
        const result = await measure(gateway, upstream, scenario, options)
        gateway.results[scenario.name] ??= []
        gateway.results[scenario.name].push(result)
      }
      const figures = offering.map(({ name, results }) => `${name} ${Math.round(results[scenario.name].at(-1).callsPerS)}`)
      say(`round ${round} of ${options.rounds}: ${scenario.title}: ${figures.join(', ')} calls/s`)
    }
  }
}

/** Starts the contenders one after the other. */
export async function startAll(contenders, upstreamUrl, folder) {
  const gateways = []
  for (const { name, title, lacks = [], start } of contenders) {
    say(`starting ${title}`)
    const started = await start({ upstreamUrl, folder })
    gateways.push({ name, title, lacks, ...started, rssIdleMib: rssMibOf(started.pid), results: {}, failures: [], answered: 0 })
  }
  return gateways
}
