/**
 * `npm run bench:console` measures the web console in a real browser, on a gateway on PostgreSQL with a large organisation: 100,000 keys, 25,000 agents,
 * a million calls and 50,000 objects of memory. It measures how long each page takes to its first paint and to its first rows, and the longest pause of the
 * page's thread while a person scrolls. README.md describes it. `--check` ends with exit code 1 when a bar is missed.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { ensure } from '../scripts/ensure.mjs'
import { root } from '../scripts/paths.mjs'
import { measurePage, signedIn, startBrowser } from './console-browser.mjs'
import { startLargeOrg } from './console-org.mjs'
import { machine } from './machine.mjs'
import { onPostgres } from './postgres-run.mjs'
import { median } from './statistics.mjs'

/** Every page with a list, and the element that is there when its first row is drawn. The overview has sums only. */
const row = 'main table tbody tr'
const pages = [
  { name: 'overview', path: '/console', first: row, paintMs: 500 },
  { name: 'agents', path: '/console/agents', first: row },
  { name: 'usage', path: '/console/usage', first: row },
  { name: 'calls', path: '/console/calls', first: row },
  { name: 'keys', path: '/console/keys', first: row },
  { name: 'memory', path: '/console/memory', first: 'main [role="treeitem"]' },
]

/** The bars: milliseconds to the first rows, milliseconds of the longest pause, and bytes that one request may answer with. */
const bars = { rowsMs: 1000, pauseMs: 100, answerBytes: 600 * 1024 }

const say = text => process.stderr.write(`${text}\n`)

function readOptions() {
  const { values } = parseArgs({
    options: {
      keys: { type: 'string', default: '100000' },
      agents: { type: 'string', default: '25000' },
      calls: { type: 'string', default: '1000000' },
      objects: { type: 'string', default: '50000' },
      times: { type: 'string', default: '5' },
      check: { type: 'boolean', default: false },
      'no-build': { type: 'boolean', default: false },
    },
  })
  const numbers = Object.fromEntries(['keys', 'agents', 'calls', 'objects', 'times'].map(name => [name, Number(values[name])]))
  for (const [name, value] of Object.entries(numbers))
    if (!Number.isSafeInteger(value) || value < 1) throw new Error(`--${name} must be a whole number of at least 1, not "${values[name]}"`)
  return { ...numbers, check: values.check, noBuild: values['no-build'] }
}

/** Returns one sentence for each bar that a page misses. */
function missed({ name, paintMs: paintBar }, { paintMs, rowsMs, pauseMs, largestBytes }) {
  const faults = []
  if (rowsMs > bars.rowsMs) faults.push(`${name}: first rows after ${Math.round(rowsMs)} ms; ${bars.rowsMs} ms is the bar`)
  if (paintBar !== undefined && paintMs > paintBar) faults.push(`${name}: first paint after ${Math.round(paintMs)} ms; ${paintBar} ms is the bar`)
  if (pauseMs > bars.pauseMs) faults.push(`${name}: a pause of ${Math.round(pauseMs)} ms while scrolling; ${bars.pauseMs} ms is the bar`)
  if (largestBytes > bars.answerBytes) faults.push(`${name}: an answer of ${largestBytes} bytes; ${bars.answerBytes} bytes is the bar`)
  return faults
}

function tableOf(results) {
  const lines = ['| page | first paint | first rows | longest pause | requests | largest answer |', '|---|---:|---:|---:|---:|---:|']
  for (const { name, paintMs, rowsMs, pauseMs, requests, largestBytes } of results)
    lines.push(
      `| ${name} | ${Math.round(paintMs)} ms | ${Math.round(rowsMs)} ms | ${Math.round(pauseMs)} ms | ${requests} | ${(largestBytes / 1024).toFixed(1)} KiB |`,
    )
  return lines.join('\n')
}

async function main() {
  const options = readOptions()
  if (!options.noBuild) await ensure({ tools: true })
  await onPostgres((postgres, folder) => measure(options, postgres, folder))
}

async function measure(options, postgres, folder) {
  let org
  let browser
  try {
    org = await startLargeOrg(postgres.url, folder, options, say)
    browser = await startBrowser()
    const state = await signedIn(browser, org.signInLink)
    const results = []
    for (const page of pages) {
      const runs = []
      for (let time = 0; time <= options.times; time++) {
        const run = await measurePage(browser, state, org.url, page)
        // The first visit warms the caches of the database and of the gateway.
        if (time > 0) runs.push(run)
      }
      const middle = key => median(runs.map(run => run[key]))
      const result = {
        name: page.name,
        paintMs: middle('paintMs'),
        rowsMs: middle('rowsMs'),
        pauseMs: middle('pauseMs'),
        requests: middle('requests'),
        largestBytes: Math.max(...runs.map(run => run.largestBytes)),
        runs,
      }
      results.push(result)
      say(`${page.name}: first rows ${Math.round(result.rowsMs)} ms`)
    }
    const faults = pages.flatMap((page, index) => missed(page, results[index]))
    mkdirSync(join(root, 'bench', 'results'), { recursive: true })
    const run = { at: new Date().toISOString(), options, bars, machine: machine() }
    writeFileSync(join(root, 'bench', 'results', 'console.json'), `${JSON.stringify({ ...run, results, faults }, null, 2)}\n`)
    console.log(`${tableOf(results)}\n`)
    console.log(faults.length === 0 ? 'Every page meets its bars.' : faults.map(fault => `missed: ${fault}`).join('\n'))
    if (options.check && faults.length > 0) process.exitCode = 1
  } finally {
    await browser?.close().catch(() => undefined)
    await org?.stop().catch(() => undefined)
  }
}

main().catch(error => {
  say(`bench: ${error.message}`)
  process.exitCode = 1
})
