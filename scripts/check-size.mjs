/**
 * Checks the number of lines of a file and the number of files in a folder, because a file should have one subject and a folder should name its content. A
 * file that consists of one table or list is exempt. Its name is in a list below.
 */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { root, runAsMain } from './paths.mjs'
import { filesBelow } from './tools.mjs'

const linesMax = 500
const filesMax = 12
/** Exempt files: they consist of one table, or a program wrote them. */
const exempt = new Set(['src/platform/errors.ts', 'src/platform/config.ts', 'src/console/api/api.gen.ts'])

/** Returns one line of text for each file that is too long. */
export function tooLong(base = root) {
  return ['src', 'test', 'scripts', 'bench', 'examples'].flatMap(folder =>
    filesBelow(folder, path => /\.(tsx?|mjs|cjs|css)$/.test(path) && !path.startsWith('test/tooling/fixtures/') && !exempt.has(path), base)
      .map(path => ({ path, lines: readFileSync(join(base, path), 'utf8').split('\n').length - 1 }))
      .filter(file => file.lines > linesMax)
      .map(file => `${file.path}: ${file.lines} lines; ${linesMax} is the limit`),
  )
}

/** Returns one line of text for each folder of src that directly contains too many files. */
export function tooFull(base = root) {
  const counts = new Map()
  for (const path of filesBelow('src', name => /\.(tsx?|css)$/.test(name), base)) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1)
  return [...counts].filter(([, files]) => files > filesMax).map(([folder, files]) => `${folder}: ${files} files; ${filesMax} is the limit`)
}

runAsMain(import.meta.url, () => {
  const found = [...tooLong(), ...tooFull()]
  for (const line of found) console.log(line)
  process.exitCode = found.length === 0 ? 0 : 1
})
