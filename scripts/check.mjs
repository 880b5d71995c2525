/**
 * `npm run check` runs every check that needs no database. Two steps run concurrently. Each step prints one line when it ends, and a failing step
 * also shows its output. The other steps run anyway, so that one run shows every failure.
 */
import { existsSync, mkdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { tooHeavy } from './build-console.mjs'
import { badCommits } from './check-commits.mjs'
import { bannedWords } from './check-english.mjs'
import { misplacedGlobals } from './check-globals.mjs'
import { brokenLinks } from './check-links.mjs'
import { missingNotes, unknownPaths } from './check-notes.mjs'
import { tooFull, tooLong } from './check-size.mjs'
import { foreignWords } from './check-words.mjs'
import { ensure } from './ensure.mjs'
import { root } from './paths.mjs'
import { binOf, startTool } from './tools.mjs'

/** Folders whose tests are pure functions, or tools that finish in seconds. Missing folders are skipped. */
const fastTests = ['test/tooling', 'test/platform', 'test/gateway/wire', 'test/gateway/providers', 'test/gateway/routing', 'test/gateway/catalog', 'test/pins']
/** Tests that start a whole gateway or kill processes. Only `npm test` runs them. */
const slowTests = [
  '**/*-http.test.ts',
  'test/platform/db*.test.ts',
  'test/platform/migrate.test.ts',
  'test/platform/jobs.test.ts',
  'test/platform/control-log.test.ts',
]

/** The folder where the compiler stores the results of its last run, so that the next run checks only changed files. */
const cache = join(root, 'node_modules', '.cache', 'brigade-check')

const tool = (packageName, command, args) => async () => {
  const { code, stdout, stderr } = await startTool(binOf(packageName, command), args)
  return { ok: code === 0, text: stdout + stderr }
}
const types = (project, name) =>
  tool('typescript', 'tsc', ['--noEmit', '-p', project, '--incremental', '--tsBuildInfoFile', join(cache, `${name}.tsbuildinfo`)])
const lines = list => async () => {
  const found = list()
  return { ok: found.length === 0, text: found.join('\n') }
}

/** Checks the layers. dependency-cruiser also reports success when it could read no file, so the number of files must be above 0. */
async function layers() {
  const { stdout, stderr } = await startTool(binOf('dependency-cruiser', 'depcruise'), ['--output-type', 'json', 'src'])
  const { summary } = JSON.parse(stdout || '{"summary":{"totalCruised":0,"error":0,"violations":[]}}')
  const text = summary.violations.map(found => `${found.rule.name}: ${found.from} -> ${found.to}`).join('\n')
  return summary.totalCruised === 0 ? { ok: false, text: `0 modules were read.\n${stderr}` } : { ok: summary.error === 0, text }
}

async function generatedFiles() {
  const { code, stdout, stderr } = await startTool(join(root, 'scripts', 'generate.mjs'), ['--check'])
  return { ok: code === 0, text: stdout + stderr }
}

/** The steps. The longest steps begin first, so that two steps run concurrently until the end. */
const steps = [
  [
    'fast tests',
    tool('vitest', 'vitest', ['run', ...fastTests.filter(folder => existsSync(join(root, folder))), ...slowTests.flatMap(pattern => ['--exclude', pattern])]),
  ],
  ['types: test', types('tsconfig.test.json', 'test')],
  ['types: src', types('tsconfig.json', 'src')],
  ['types: console', types('src/console/tsconfig.json', 'console')],
  ['format and lint', tool('@biomejs/biome', 'biome', ['check', '--max-diagnostics=200', '.'])],
  ['generated files', generatedFiles],
  ['dead code', tool('knip', 'knip', [])],
  ['layers', layers],
  ['sizes of files and folders', lines(() => [...tooLong(), ...tooFull()])],
  ['clock, chance, environment, SQL', lines(misplacedGlobals)],
  ['weight of the console', lines(() => tooHeavy(join(root, 'dist', 'console')))],
  ['words', lines(foreignWords)],
  ['plain English', lines(bannedWords)],
  ['links', lines(brokenLinks)],
  ['notes of folders', lines(() => [...missingNotes(), ...unknownPaths()])],
  ['messages of commits', lines(badCommits)],
]

const failed = []

async function runStep([name, run]) {
  const startedMs = Date.now()
  const { ok, text } = await run()
  console.log(`${ok ? 'ok  ' : 'FAIL'} ${name} (${((Date.now() - startedMs) / 1000).toFixed(1)} s)`)
  if (ok) return
  failed.push(name)
  console.log(text.trimEnd().replace(/^/gm, '     '))
}

await ensure({ tools: true })
mkdirSync(cache, { recursive: true })
const waiting = steps.values()
const startedMs = Date.now()
await Promise.all(
  Array.from({ length: Math.min(2, availableParallelism()) }, async () => {
    for (const step of waiting) await runStep(step)
  }),
)
const seconds = ((Date.now() - startedMs) / 1000).toFixed(0)
console.log(failed.length === 0 ? `All checks passed in ${seconds} s.` : `${failed.length} of ${steps.length} checks failed: ${failed.join(', ')}.`)
process.exitCode = failed.length === 0 ? 0 : 1
