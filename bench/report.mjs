/** Turns the results of the rounds into two tables: first the ratios to the passthrough, then the measured figures. */
import { readFileSync } from 'node:fs'
import { median } from './statistics.mjs'

/** The limits that the gateway must meet. A limit with `run` belongs to another measurement. */
const bars = JSON.parse(readFileSync(new URL('bars.json', import.meta.url), 'utf8')).filter(({ run }) => run === undefined)

/** Returns a number. A missing number becomes NaN, which `median` ignores. */
const numberOf = value => value ?? Number.NaN
/** Returns the results of the rounds of a scenario. */
export const resultsOf = (contestant, scenario) => contestant.results[scenario] ?? []

/** Compares each round with the passthrough of the same round, then takes the median. */
const byRound = compare => (read, scenario) => (contestant, base) =>
  median(resultsOf(contestant, scenario).map((result, round) => compare(numberOf(read(result)), numberOf(read(resultsOf(base, scenario)[round] ?? {})))))
/** Returns the ratio to the first contender. */
export const ratioOf = byRound((theirs, base) => theirs / base)
/** Returns the difference from the first contender. */
export const addedOf = byRound((theirs, base) => theirs - base)

/** Compares the best rounds. Other work of the machine can only slow a round down, so the best round of each contender is the least disturbed one. */
export const bestRatioOf = (read, scenario) => (contestant, base) => {
  const best = of => Math.max(...resultsOf(of, scenario).map(read))
  const value = best(contestant) / best(base)
  return Number.isFinite(value) ? value : null
}

const callsPerS = result => result.callsPerS
const chunksPerS = result => result.chunksPerS
const cpuUs = result => result.cpuUsOfCall
const p50Ms = result => result.latencyMs?.p50
const p99Ms = result => result.latencyMs?.p99
const firstByteP50Ms = result => result.firstByteMs?.p50
const firstByteP99Ms = result => result.firstByteMs?.p99
const gapP99Ms = result => result.gapMs?.p99

/** The lines of the ratio table. Each has its name in the JSON, its heading, its unit, and a function that calculates its value. */
const measures = [
  ['throughput', 'chat, 50 connections: throughput', 'times', ratioOf(callsPerS, 'chat-50')],
  ['throughputBest', 'the same by the best round of each', 'times', bestRatioOf(callsPerS, 'chat-50')],
  ['cpuOfCall', 'processor time a call', 'times', ratioOf(cpuUs, 'chat-50')],
  ['addedP50Ms', 'chat, 1 connection: added p50', 'ms', addedOf(p50Ms, 'chat-1')],
  ['addedP99Ms', 'added p99', 'ms', addedOf(p99Ms, 'chat-1')],
  ['addedFirstByteP50Ms', 'stream, 1 connection: added first byte p50', 'ms', addedOf(firstByteP50Ms, 'stream-1')],
  ['addedFirstByteP99Ms', 'added first byte p99', 'ms', addedOf(firstByteP99Ms, 'stream-1')],
  ['chunks', 'streams, 50 connections: chunk throughput', 'times', ratioOf(chunksPerS, 'stream-50')],
  ['chunksBest', 'the same by the best round of each', 'times', bestRatioOf(chunksPerS, 'stream-50')],
  ['cpuOfStream', 'processor time a stream', 'times', ratioOf(cpuUs, 'stream-50')],
  ['messages', 'messages translated to chat, 50 connections: throughput', 'times', ratioOf(callsPerS, 'messages-50')],
  ['messagesBest', 'the same by the best round of each', 'times', bestRatioOf(callsPerS, 'messages-50')],
  ['messagesStreams', 'messages streams translated, 50 connections: throughput', 'times', ratioOf(callsPerS, 'messages-stream-50')],
  ['messagesStreamsBest', 'the same by the best round of each', 'times', bestRatioOf(callsPerS, 'messages-stream-50')],
  ['slowFinished', 'slow streams: finished', 'text', finished],
  ['slowOpenMax', 'most of them open together', 'text', contestant => median(resultsOf(contestant, 'slow').map(result => result.openMax))],
  ['addedGapP99Ms', 'added p99 between chunks', 'ms', addedOf(gapP99Ms, 'slow')],
  [
    'loopDelayP99Ms',
    'chat, 50 connections: loop delay p99',
    'delay',
    contestant => median(resultsOf(contestant, 'chat-50').map(result => numberOf(result.loopDelayP99Ms))),
  ],
  ['garbageKibOfCall', 'garbage a call', 'kib', contestant => median(resultsOf(contestant, 'chat-50').map(result => numberOf(result.garbageKibOfCall)))],
  ['rssIdleMib', 'resident memory: after the start', 'mib', contestant => contestant.rssIdleMib],
  ['rssSlowMib', 'peak in slow streams', 'mib', contestant => peak(resultsOf(contestant, 'slow'))],
  ['rssPeakMib', 'peak of the run', 'mib', contestant => peak(Object.values(contestant.results).flat())],
]

function finished(contestant) {
  const runs = resultsOf(contestant, 'slow')
  const sum = name => runs.reduce((total, run) => total + run[name], 0)
  return runs.length === 0 ? null : `${sum('answered')} of ${sum('answered') + sum('failed')}`
}

function peak(results) {
  const values = results.map(result => result.rssPeakMib).filter(Number.isFinite)
  return values.length === 0 ? null : Math.max(...values)
}

/** Returns the ratio table as data, with one object for each contender. The first contender is the passthrough, and all others are compared with it. */
export function summarize(contestants) {
  const [base] = contestants
  return contestants.map(contestant => ({
    name: contestant.name,
    title: contestant.title,
    ...Object.fromEntries(measures.map(([name, , , value]) => [name, value(contestant, base)])),
  }))
}

const write = {
  times: value => `${value.toFixed(2)} x`,
  ms: value => `${value < 0 ? '' : '+'}${value.toFixed(2)} ms`,
  delay: value => `${value.toFixed(1)} ms`,
  kib: value => `${value.toFixed(1)} KiB`,
  mib: value => `${Math.round(value)} MiB`,
  text: String,
}

function cellOf(value, unit, isBase) {
  if (value === null) return ''
  return isBase && unit === 'ms' ? '0' : write[unit](value)
}

/** Returns a table as Markdown. All columns but the first are figures. */
export const table = (heads, rows) =>
  [heads, heads.map((_, index) => (index === 0 ? '---' : '---:')), ...rows].map(cells => `| ${cells.join(' | ')} |`).join('\n')

/** The columns of the second table. Each has its heading, its number of digits, and a function that reads its value from one result. */
const details = [
  ['calls/s', 0, callsPerS],
  ['p50 ms', 2, p50Ms],
  ['p99 ms', 2, p99Ms],
  ['first byte p50', 2, firstByteP50Ms],
  ['p99', 2, firstByteP99Ms],
  ['chunks/s', 0, chunksPerS],
  ['gap p99', 0, gapP99Ms],
  ['CPU us a call', 0, cpuUs],
  ['gateway busy', 2, result => result.gatewayBusy],
  ['load busy', 2, result => result.loadBusy],
]

function absolutes({ scenarios }, contestants) {
  const rowOf = (title, contestant, results) => [
    title,
    contestant.name,
    ...details.map(([, digits, read]) => median(results.map(result => numberOf(read(result))))?.toFixed(digits) ?? ''),
    String(results.reduce((total, result) => total + result.failed, 0)),
  ]
  const rows = scenarios.flatMap(({ name, title }) => contestants.map(contestant => rowOf(title, contestant, resultsOf(contestant, name))))
  return table(['', 'gateway', ...details.map(([head]) => head), 'failed'], rows)
}

/** Returns a paragraph that says how, when and where a run was made. */
export function describe({ options, machine, isPinned }) {
  const place = isPinned ? 'gateway on core 0, upstream and load on core 1' : 'not bound to cores'
  const load = `load average ${machine.loadAverage.toFixed(1)} before and ${machine.loadAverageAtEnd.toFixed(1)} after`
  return `Medians of ${options.rounds} alternating rounds of ${options.durationMs / 1000} s. ${machine.cpu}, ${machine.cores} cores, ${place}, Node ${machine.node}, commit ${machine.commit}, ${load}.`
}

/** Returns the limits of bars.json for the measured figures, each with a verdict. */
export function verdictsOf(summary) {
  return bars.flatMap(({ measure, of, least = null, most = null }) => {
    const row = summary.find(({ name }) => name === of)
    const found = measures.find(([name]) => name === measure)
    if (found === undefined) throw new Error(`bars.json names "${measure}", which is not measured`)
    const value = row?.[measure] ?? null
    if (value === null) return []
    const isMet = (least === null || value >= least) && (most === null || value <= most)
    return [{ measure, of, title: row.title, head: found[1], unit: found[2], least, most, value, verdict: isMet ? 'met' : 'missed' }]
  })
}

const verdictTable = verdicts =>
  table(
    ['bar', 'gateway', 'limit', 'measured', 'verdict'],
    verdicts.map(({ head, title, unit, least, most, value, verdict }) => [
      head,
      title,
      `${least === null ? 'at most' : 'at least'} ${write[unit](least ?? most)}`,
      write[unit](value),
      verdict,
    ]),
  )

/** Returns both tables as Markdown, with a line about the machine, the verdicts on the limits, and every failure. */
export function markdown(run, summary, contestants) {
  const heads = ['against the passthrough', ...summary.map(({ title }) => title)]
  const rows = measures
    .filter(([name]) => summary.some(row => row[name] !== null))
    .map(([name, head, unit]) => [head, ...summary.map((row, index) => cellOf(row[name], unit, index === 0))])
  const billed = contestants.filter(({ bill }) => bill !== null)
  return [
    '',
    table(heads, rows),
    '',
    `Each against the passthrough of its own round. ${describe(run)}`,
    ...billed.map(({ title, bill }) => `${title}: the usage report has all ${bill.requests} answered calls, ${bill.cost_uinr} micro-rupees, to the unit.`),
    '',
    verdictTable(verdictsOf(summary)),
    '',
    absolutes(run, contestants),
    ...contestants.flatMap(({ title, failures }) => failures.map(failure => `\nFAILED ${title}: ${failure}`)),
  ].join('\n')
}
