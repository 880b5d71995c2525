/**
 * Finds banned words in comments, messages, test titles and documents, and says what to write instead. docs/terminology.md lists them for people.
 * Identifiers of the code are not checked.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root, runAsMain } from './paths.mjs'
import { filesBelow } from './tools.mjs'

const banned = [
  { pattern: /\bat once\b/i, why: 'it has two meanings: say "immediately" or "concurrently"' },
  { pattern: /\banew\b/i, why: 'say "again"' },
  { pattern: /\bnobody stands behind\b/i, why: 'say "a key without a user"' },
  { pattern: /\b(?:stands?|stood)\b(?!-ins?\b| (?:for|in for)\b)/i, why: 'say "is", "is in" or "is written"' },
  { pattern: /\bhears?\b(?! back)/i, why: 'say "receives", "reads" or "is notified"' },
  { pattern: /\blies? (?:in|on|under|below|outside|behind|beside)\b/i, why: 'say "is in", "is under" or "is after"' },
  { pattern: /\b(?:that|which|who) (?:is|are) none\b/i, why: 'say "invalid", or what it is' },
  { pattern: /\bwish(?:es)?\b/i, why: 'say "request", "parameter" or "option"' },
]

/** Files that may contain banned words, because they explain them. */
export const exempt = ['docs/terminology.md']

const isChecked = path => /\.(tsx?|mjs|md|sql)$/.test(path)
const skipped = path => path.startsWith('test/tooling/fixtures/words') || path === 'scripts/check-english.mjs' || exempt.includes(path)

/** Returns the prose of a line: the whole line of a document, or the comment of a line of code. Undefined without a comment. */
function proseOf(path, line) {
  if (path.endsWith('.md')) return line
  const comment = /^\s*(?:\/?\*|\/\/|--)(.*)$|\s\/\/ (.*)$|\/\*\*(.*)\*\//.exec(line)
  return comment === null ? undefined : (comment[1] ?? comment[2] ?? comment[3] ?? '')
}

/** Returns the quoted texts of several words in a line of code. */
const quotedIn = (path, line) =>
  path.endsWith('.md') ? [] : (line.match(/'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`?/g) ?? []).filter(text => text.includes(' '))

/** Returns the match of a pattern that begins in the line `prose` and ends in the line `next`. Null when there is none. */
function acrossBreak(pattern, prose, next) {
  if (prose === undefined || next === undefined) return null
  const before = prose.trimEnd()
  const match = new RegExp(pattern, pattern.flags).exec(`${before} ${next.trimStart()}`)
  return match !== null && match.index < before.length && match.index + match[0].length > before.length + 1 ? match : null
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
      const prose = proseOf(path, line)
      const texts = prose === undefined ? quotedIn(path, line) : [prose, ...quotedIn(path, line)]
      const next = lines[index + 1] === undefined ? undefined : proseOf(path, lines[index + 1])
      return banned.flatMap(({ pattern, why }) => {
        const match = texts.map(text => pattern.exec(text)).find(found => found !== null) ?? acrossBreak(pattern, prose, next)
        return match === null ? [] : [`${path}:${index + 1}: ${match[0]}: ${why}`]
      })
    })
  })
}

runAsMain(import.meta.url, () => {
  const found = bannedWords()
  for (const line of found) console.log(line)
  process.exitCode = found.length === 0 ? 0 : 1
})
