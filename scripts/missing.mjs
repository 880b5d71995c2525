/**
 * Reports the promises that a test run could not check on this machine. These are the ids in the titles of skipped tests, without the ids that are also in
 * the title of a passed test. They are grouped by the part that the machine lacks. `npm test` adds it to vitest as a reporter. .ci/run uses it as a command
 * on the JSON reports of several runs: `node scripts/missing.mjs <report> …`.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root, runAsMain } from './paths.mjs'
import { filesBelow } from './tools.mjs'

const idPattern = /^[A-Z]{2,8}-\d{2,3}$/
const postgres = 'PostgreSQL (TEST_DATABASE=postgres npm test; on Debian: apt-get install postgresql)'
const embedded = 'the embedded database (npm test without TEST_DATABASE)'

/** Returns the ids at the beginning of a title. */
function idsOf(title) {
  const ids = []
  for (const word of title.split(/[\s,]+/)) {
    if (!idPattern.test(word)) break
    ids.push(word)
  }
  return ids
}

/** Returns the part that a skipped test needs. It is guessed from the titles, the file and the note of the test. */
function partOf({ titles, file, note, onPostgres }) {
  if (note) return note
  for (const title of titles) {
    const [, name] = /on (\S+) \(not installed\)/.exec(title) ?? []
    if (name !== undefined) return `${name} (not installed)`
  }
  const source = existsSync(file) ? readFileSync(file, 'utf8') : ''
  if (/\bonPostgres\b/.test(source) || file.includes('.multi.')) return onPostgres ? embedded : postgres
  if (/\bhasTools\b|\bhas\('/.test(source)) return 'programs that the test starts (python3, openssl, curl)'
  return 'something that its file names'
}

/**
 * Returns one line of text for each part that the machine lacks. `tests` are `{ titles, file, state, note, onPostgres }` of one or more runs. `titles` go
 * from the outermost suite to the test, and `state` is passed, failed or skipped.
 */
export function missingLines(tests) {
  const passed = new Set()
  for (const { titles, state } of tests) if (state === 'passed') for (const title of titles) for (const id of idsOf(title)) passed.add(id)
  const parts = new Map()
  for (const test of tests) {
    if (test.state !== 'skipped') continue
    const part = partOf(test)
    const entry = parts.get(part) ?? { ids: new Set(), tests: 0 }
    entry.tests++
    for (const title of test.titles) for (const id of idsOf(title)) if (!passed.has(id)) entry.ids.add(id)
    parts.set(part, entry)
  }
  return [...parts]
    .filter(([, { ids }]) => ids.size > 0)
    .map(([part, { ids, tests: count }]) => `not shown here, for want of ${part}: ${[...ids].sort().join(' ')} (${count} tests skipped)`)
}

/** Prints the lines after the summary of a run. */
// biome-ignore lint/style/noDefaultExport: vitest loads a reporter by its default export.
export default class MissingReporter {
  onTestRunEnd(modules) {
    const onPostgres = process.env.TEST_DATABASE === 'postgres'
    const tests = []
    for (const module of modules)
      for (const test of module.children.allTests()) {
        const titles = [test.name]
        for (let suite = test.parent; suite.type === 'suite'; suite = suite.parent) titles.unshift(suite.name)
        const result = test.result()
        tests.push({ titles, file: module.moduleId, state: result.state, note: result.note, onPostgres })
      }
    for (const line of missingLines(tests)) console.log(line)
  }
}

/** Returns the tests of a JSON report. The report of a run on PostgreSQL has "postgres" in its name. */
function testsOf(report) {
  const onPostgres = report.includes('postgres')
  return JSON.parse(readFileSync(report, 'utf8')).testResults.flatMap(({ name, assertionResults }) =>
    assertionResults.map(({ ancestorTitles, title, status }) => ({
      titles: [...ancestorTitles, title],
      file: name,
      state: status === 'pending' || status === 'todo' ? 'skipped' : status,
      onPostgres,
    })),
  )
}

/** Returns the tests that run only on PostgreSQL. It reads their titles from the files, because without a server .ci/run does not run these files. */
function testsWithoutServer() {
  return filesBelow('test', path => /\.(multi|load)\.test\.ts$/.test(path)).flatMap(path =>
    [...readFileSync(join(root, path), 'utf8').matchAll(/\(\s*(['"`])((?:[A-Z]{2,8}-\d{2,3},?\s+)+)/g)].map(match => ({
      titles: [match[2]],
      file: join(root, path),
      state: 'skipped',
      onPostgres: false,
    })),
  )
}

runAsMain(import.meta.url, () => {
  const reports = process.argv.slice(2).filter(existsSync)
  const hasServer = reports.some(report => report.includes('postgres'))
  const lines = missingLines([...reports.flatMap(testsOf), ...(hasServer ? [] : testsWithoutServer())])
  console.log(lines.length === 0 ? 'every promise was shown on this machine' : lines.join('\n'))
})
