/**
 * Checks that every relative link of a document leads to a file or folder of the repository, and that the linked heading exists. It also checks that every
 * `Decision NNNN` in the code has a section, and that a document links to each section.
 */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { root, runAsMain } from './paths.mjs'
import { filesBelow } from './tools.mjs'

const link = /\]\(([^)\s#]*)(?:#([^)\s]*))?\)/g
const isElsewhere = path => /^[a-z]+:|^[/$]/.test(path)

/** Returns a heading in the form that links use: small letters, digits, hyphens and underscores. */
const anchorOf = heading =>
  heading
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')

/** Links in code are examples and do not count. */
const withoutCode = text => text.replace(/^(```|~~~)[\s\S]*?^\1/gm, '')
const withoutSpans = text => withoutCode(text).replace(/`[^`\n]*`/g, '')
const anchorsOf = text => new Set([...withoutCode(text).matchAll(/^#{1,6} +(.*)$/gm)].map(([, heading]) => anchorOf(heading.trim())))

const decisionsFolder = 'docs/internals/decisions'

/** Returns one line of text for each wrong decision: the code names it but it has no section, it has two sections, or no document links to it. */
function strayDecisions(base, linked) {
  const found = []
  const numbers = new Set()
  for (const page of filesBelow(decisionsFolder, path => path.endsWith('.md'), base)) {
    for (const [, number, title] of withoutCode(readFileSync(join(base, page), 'utf8')).matchAll(/^## (\d{4}) (.*)$/gm)) {
      if (numbers.has(number)) found.push(`${page}: decision ${number} has another section`)
      numbers.add(number)
      if (!linked.has(`${page}#${anchorOf(`${number} ${title.trim()}`)}`)) found.push(`${page}: no document links to decision ${number}`)
    }
  }
  for (const path of filesBelow('src', path => /\.tsx?$/.test(path), base))
    for (const [, number] of readFileSync(join(base, path), 'utf8').matchAll(/\bDecision (\d{4})\b/g))
      if (!numbers.has(number)) found.push(`${path}: decision ${number} does not exist`)
  return found
}

/** Returns one line of text for each broken link and each wrong decision. */
export function brokenLinks(base = root) {
  const found = []
  const linked = new Set()
  const pages = ['docs', 'bench', 'examples', 'src', 'test'].flatMap(folder =>
    filesBelow(folder, path => path.endsWith('.md') && !path.includes('/fixtures/'), base),
  )
  for (const page of [...pages, 'README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md']) {
    if (!existsSync(join(base, page))) continue
    const text = readFileSync(join(base, page), 'utf8')
    for (const [, path, anchor] of withoutSpans(text).matchAll(link)) {
      if (isElsewhere(path) || (path === '' && anchor === undefined)) continue
      const target = path === '' ? page : normalize(join(dirname(page), path)).replaceAll('\\', '/')
      const file = join(base, target)
      linked.add(`${target}#${anchor}`)
      if (!existsSync(file)) found.push(`${page}: ${path} does not exist`)
      else if (anchor && statSync(file).isFile() && target.endsWith('.md') && !anchorsOf(readFileSync(file, 'utf8')).has(anchor))
        found.push(`${page}: ${path}#${anchor} has no such heading`)
    }
  }
  return [...found, ...strayDecisions(base, linked)]
}

runAsMain(import.meta.url, () => {
  const found = brokenLinks()
  for (const line of found) console.log(line)
  process.exitCode = found.length === 0 ? 0 : 1
})
