/**
 * Checks that src/ uses time, random numbers, the environment and SQL only in the files that are allowed to. So tests can inject the first three, and a
 * reader finds the SQL. It reads the source text without comments, but with strings, because SQL is a string.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root, runAsMain } from './paths.mjs'
import { filesBelow } from './tools.mjs'

const databaseDrivers = /^src\/platform\/db\//

const rules = [
  {
    what: 'the clock',
    use: 'inject Clock (platform/clock.ts)',
    pattern: /\bDate\.now\b|\bnew Date\(\)|\bDate\(\)|\bperformance\.now\b|\bprocess\.hrtime\b/,
    home: /^src\/platform\/(clock|db\/jobs)\.ts$/,
  },
  {
    what: 'a timer',
    use: 'inject Clock (platform/clock.ts)',
    pattern: /(?<![.\w])(setTimeout|setInterval)\(|\bnode:timers\b/,
    home: /^src\/platform\/(clock\.ts$|db\/)/,
  },
  {
    what: 'chance',
    use: 'inject Ids (platform/values/ids.ts)',
    pattern: /\bMath\.random\b|\brandomUUID\b|\brandomBytes\b|\brandomInt\b|\bgetRandomValues\b/,
    home: /^src\/platform\/(values\/(ids|hash-seed)|security\/secrets)\.ts$/,
  },
  { what: 'the environment', use: 'read Config (platform/config.ts)', pattern: /\bprocess\.env\b/, home: /^src\/platform\/config\.ts$/ },
  {
    what: 'SQL text',
    use: 'write it in the queries.ts of the folder; up to three statements that are not exported may be in the file that uses them',
    pattern: /[`'"]\s*(select\s[\s\S]{1,400}?\bfrom\b|insert\s+into\s|update\s+\w+\s+set\s|delete\s+from\s|with\s+\w+\s+as\s*(materialized\s*)?\()/,
    home: (path, text) => databaseDrivers.test(path) || /(^|[/-])queries\.ts$/.test(path) || hasOwnStatements(text),
  },
]

const ownStatementsMax = 3

/** Returns whether a file has only a few statements for its own use. All SQL of the file must be in these statements, and they must not be exported. */
function hasOwnStatements(text) {
  const statements = text.match(/^(export )?const \w+ = statement</gm) ?? []
  return statements.length >= 1 && statements.length <= ownStatementsMax && statements.every(line => !line.startsWith('export '))
}

/** Returns the text with spaces in place of comments. Line breaks stay. A `//` inside a string or a URL does not begin a comment. */
function withoutComments(text) {
  return text
    .replace(/\/\*[\s\S]*?\*\//g, comment => comment.replace(/[^\n]/g, ' '))
    .replace(/(^|[\s;{}(),])\/\/[^\n]*/g, (comment, before) => before + ' '.repeat(comment.length - before.length))
}

/** Folders whose code does not run in the gateway. */
const outside = ['src/agents/toolkit/', 'src/console/']

/** Returns one line of text for each use in a file that is not allowed to. Only the rule for SQL applies to the toolkit and the console, because they run at clients. */
export function misplacedGlobals(base = root) {
  const found = []
  for (const path of filesBelow('src', name => name.endsWith('.ts'), base)) {
    const text = withoutComments(readFileSync(join(base, path), 'utf8'))
    for (const { what, use, pattern, home } of rules) {
      if (typeof home === 'function' ? home(path, text) : home.test(path)) continue
      if (outside.some(folder => path.startsWith(folder)) && what !== 'SQL text') continue
      for (const match of text.matchAll(new RegExp(pattern, 'g'))) {
        found.push(`${path}:${text.slice(0, match.index).split('\n').length}: ${what} (${match[0].trim().slice(0, 40).replace(/\s+/g, ' ')}); ${use}`)
      }
    }
  }
  return found
}

runAsMain(import.meta.url, () => {
  const found = misplacedGlobals()
  for (const line of found) console.log(line)
  process.exitCode = found.length === 0 ? 0 : 1
})
