/** A source file has one subject: more than 400 lines fail. Data tables are exempt by name. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root, runAsMain } from './paths.mjs'
import { filesBelow } from './tools.mjs'

const linesMax = 400
/** Files that are one table, or that a program wrote. */
const exempt = new Set(['src/platform/errors.ts', 'src/platform/config.ts'])

/** One line of text for each file that is too long. */
export function tooLong(base = root) {
  return ['src', 'test', 'scripts', 'bench', 'examples'].flatMap(folder =>
    filesBelow(folder, path => /\.(ts|mjs|cjs)$/.test(path) && !path.startsWith('test/tooling/fixtures/') && !exempt.has(path), base)
      .map(path => ({ path, lines: readFileSync(join(base, path), 'utf8').split('\n').length - 1 }))
      .filter(file => file.lines > linesMax)
      .map(file => `${file.path}: ${file.lines} lines; ${linesMax} is the limit`),
  )
}

runAsMain(import.meta.url, () => {
  const found = tooLong()
  for (const line of found) console.log(line)
  process.exitCode = found.length === 0 ? 0 : 1
})
