/**
 * Checks that no file refers to notes that a reader of the repository cannot open, to a folder of one person's machine, or to the name of another
 * product. The patterns are assembled so that this file does not match itself.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root, runAsMain } from './paths.mjs'
import { filesBelow } from './tools.mjs'

const patterns = [
  { why: 'a folder outside the repository', pattern: new RegExp(`\\.\\./${'shared'}\\b|/work/${'main'}\\b|/work/${'shared'}\\b|/Users/[a-z]|/home/[a-z]`) },
  { why: 'a decision by a number that the repository does not have', pattern: /\bC-\d{1,3}\b/ },
  {
    why: 'a document that the repository does not have',
    pattern: new RegExp(`\\b${'interface'}\\.md\\b|\\b${'requirements'}\\.md\\b|(?<!concepts/)\\b${'budgets'}\\.md\\b|\\bstyle\\.md\\b`),
  },
  { why: 'another product', pattern: new RegExp(`b${'harat'}`, 'i') },
]
const isText = path => /\.(tsx?|css|html|mjs|cjs|js|json|md|sql|txt|yml|yaml|example|sh)$/.test(path) || path === '.ci/run'
const skipped = path => path.startsWith('test/tooling/fixtures/words') || path === 'scripts/check-words.mjs'

/** Returns one line of text for each match. Only the first three rules apply to catalog/, because provider ids there are data. */
export function foreignWords(base = root) {
  const found = []
  const paths = ['src', 'test', 'docs', 'scripts', 'bench', 'examples', 'migrations', 'catalog', '.ci', 'server-card'].flatMap(folder =>
    filesBelow(folder, isText, base),
  )
  for (const path of [...paths, 'README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md', 'package.json', '.env.example']) {
    if (skipped(path) || path.startsWith('bench/results/')) continue
    let text
    try {
      text = readFileSync(join(base, path), 'utf8')
    } catch {
      continue
    }
    text.split('\n').forEach((line, index) => {
      for (const { why, pattern } of patterns) {
        if (why === 'another product' && path.startsWith('catalog/')) continue
        const match = pattern.exec(line)
        if (match) found.push(`${path}:${index + 1}: ${match[0]}: ${why}`)
      }
    })
  }
  return found
}

runAsMain(import.meta.url, () => {
  const found = foreignWords()
  for (const line of found) console.log(line)
  process.exitCode = found.length === 0 ? 0 : 1
})
