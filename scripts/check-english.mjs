/**
 * Finds words that the project does not use in comments, messages, titles of tests and documents, with the reason for each. docs/terminology.md lists
 * them for people. Identifiers of the code are not checked.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root, runAsMain } from './paths.mjs'
import { filesBelow } from './tools.mjs'

const banned = [
  { pattern: /\bat once\b/i, why: 'it has two meanings: say "immediately" or "concurrently"' },
  { pattern: /\banew\b/i, why: 'say "again"' },
  { pattern: /\bnobody stands behind\b/i, why: 'say "a key without a user"' },
  { pattern: /\b(?:stands|stood)\b(?! (?:for|in for)\b)/i, why: 'say "is", "is in" or "is written"' },
  { pattern: /\bhears?\b(?! back)/i, why: 'say "receives", "reads" or "is notified"' },
  { pattern: /\blies? (?:in|on|under|below|outside|behind|beside)\b/i, why: 'say "is in", "is under" or "is after"' },
  { pattern: /\b(?:that|which|who) (?:is|are) none\b/i, why: 'say "invalid", or what it is' },
  { pattern: /\bwish(?:es)?\b/i, why: 'say "request", "parameter" or "option"' },
]

/** Files that name such words to explain them. */
export const exempt = ['docs/terminology.md']

const isChecked = path => /\.(ts|mjs|md|sql)$/.test(path)
const skipped = path => path.startsWith('test/tooling/fixtures/words') || path === 'scripts/check-english.mjs' || exempt.includes(path)

/** Returns the parts of a line that people read: the whole line of a document, and code comments and quoted texts of several words. */
function textsOf(path, line) {
  if (path.endsWith('.md')) return [line]
  const comment = /^\s*(?:\/?\*|\/\/|--)(.*)$|\s\/\/ (.*)$|\/\*\*(.*)\*\//.exec(line)
  const quoted = (line.match(/'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`?/g) ?? []).filter(text => text.includes(' '))
  return comment === null ? quoted : [comment[1] ?? comment[2] ?? comment[3] ?? '', ...quoted]
}

/** Returns one line of text for each banned word, with its place and what to say instead. */
export function bannedWords(base = root) {
  const paths = ['src', 'test', 'docs', 'scripts'].flatMap(folder => filesBelow(folder, isChecked, base)).filter(path => !skipped(path))
  return [...paths, 'README.md'].flatMap(path => {
    let lines
    try {
      lines = readFileSync(join(base, path), 'utf8').split('\n')
    } catch {
      return []
    }
    return lines.flatMap((line, index) => {
      const texts = textsOf(path, line)
      return banned.flatMap(({ pattern, why }) => {
        const match = texts.map(text => pattern.exec(text)).find(found => found !== null)
        return match === undefined ? [] : [`${path}:${index + 1}: ${match[0]}: ${why}`]
      })
    })
  })
}

runAsMain(import.meta.url, () => {
  const found = bannedWords()
  for (const line of found) console.log(line)
  process.exitCode = found.length === 0 ? 0 : 1
})
