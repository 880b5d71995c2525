/**
 * `npm run check`: everything that needs no database. One line a step; a failing step shows what it printed, and the steps after
 * it run all the same, so that one run tells the whole story.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { misplacedGlobals } from './check-globals.mjs'
import { tooLong } from './check-size.mjs'
import { foreignWords } from './check-words.mjs'
import { ensureInstalled } from './ensure.mjs'
import { root } from './paths.mjs'
import { binOf, runTool } from './tools.mjs'

/** Folders whose tests are pure functions, or tools that finish in seconds. Absent ones are passed over. */
const fastTests = ['test/tooling', 'test/platform', 'test/gateway/wire', 'test/gateway/providers', 'test/gateway/routing', 'test/gateway/catalog', 'test/pins']
/** What starts a whole gateway or kills processes belongs to `npm test`. */
const slowTests = [
  '**/*-http.test.ts',
  'test/platform/db*.test.ts',
  'test/platform/migrate.test.ts',
  'test/platform/jobs.test.ts',
  'test/platform/control-log.test.ts',
]

const tool = (packageName, command, args) => () => {
  const { code, stdout, stderr } = runTool(binOf(packageName, command), args)
  return { ok: code === 0, text: stdout + stderr }
}
const lines = list => () => {
  const found = list()
  return { ok: found.length === 0, text: found.join('\n') }
}

/** The cruiser reports success when it could read nothing, so the count is part of the verdict. */
function layers() {
  const { stdout, stderr } = runTool(binOf('dependency-cruiser', 'depcruise'), ['--output-type', 'json', 'src'])
  const { summary } = JSON.parse(stdout || '{"summary":{"totalCruised":0,"error":0,"violations":[]}}')
  const text = summary.violations.map(found => `${found.rule.name}: ${found.from} -> ${found.to}`).join('\n')
  return summary.totalCruised === 0 ? { ok: false, text: `0 modules were read.\n${stderr}` } : { ok: summary.error === 0, text }
}

const steps = [
  ['format and lint', tool('@biomejs/biome', 'biome', ['check', '--max-diagnostics=200', '.'])],
  ['types: src', tool('typescript', 'tsc', ['--noEmit', '-p', 'tsconfig.json'])],
  ['types: test', tool('typescript', 'tsc', ['--noEmit', '-p', 'tsconfig.test.json'])],
  ['layers', layers],
  ['dead code', tool('knip', 'knip', [])],
  ['file size', lines(tooLong)],
  ['clock, chance, environment, SQL', lines(misplacedGlobals)],
  ['words', lines(foreignWords)],
  [
    'generated files',
    () => {
      const { code, stdout, stderr } = runTool(join(root, 'scripts', 'generate.mjs'), ['--check'])
      return { ok: code === 0, text: stdout + stderr }
    },
  ],
  [
    'fast tests',
    tool('vitest', 'vitest', ['run', ...fastTests.filter(folder => existsSync(join(root, folder))), ...slowTests.flatMap(pattern => ['--exclude', pattern])]),
  ],
]

ensureInstalled()
const failed = []
for (const [name, run] of steps) {
  const startedMs = Date.now()
  const { ok, text } = run()
  console.log(`${ok ? 'ok  ' : 'FAIL'} ${name} (${((Date.now() - startedMs) / 1000).toFixed(1)} s)`)
  if (ok) continue
  failed.push(name)
  console.log(text.trimEnd().replace(/^/gm, '     '))
}
console.log(failed.length === 0 ? 'All checks passed.' : `${failed.length} of ${steps.length} checks failed: ${failed.join(', ')}.`)
process.exitCode = failed.length === 0 ? 0 : 1
