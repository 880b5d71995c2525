/** Checks that each domain has a README.md, and that ARCHITECTURE.md names only files and folders that exist. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root, runAsMain } from './paths.mjs'

const foldersIn = (folder, base) =>
  readdirSync(join(base, folder), { withFileTypes: true })
    .filter(entry => entry.isDirectory())
    .map(entry => `${folder}/${entry.name}`)
    .sort()

/** Returns the folders of src and of src/gateway, and the toolkit, which ships separately. */
const foldersWithNote = base => [...foldersIn('src', base), ...foldersIn('src/gateway', base), 'src/agents/toolkit']

/** Returns one line of text for each folder that has no README.md. */
export function missingNotes(base = root) {
  return foldersWithNote(base)
    .filter(folder => !existsSync(join(base, folder, 'README.md')))
    .map(folder => `${folder}: a README.md is missing; it says what the folder is, what always holds in it, and what to read first`)
}

/**
 * Matches a span of code that is a path: it has a slash inside or at the end, or is a file name with an extension, and contains only characters of
 * paths.
 */
const path = /^(?:[\w.-]+\/)+[\w.-]*$|^[\w-]+\.(?:ts|mjs|cjs|json|md|txt|yaml)$/
/** Names to ignore, because they are not paths of the repository: files of the operator, and names that many folders have. */
const elsewhere = new Set(['brigade.config.json', 'README.md', 'endpoints.ts'])

/** Returns one line of text for each path in ARCHITECTURE.md that is neither below src nor below the root. */
export function unknownPaths(base = root) {
  const text = readFileSync(join(base, 'ARCHITECTURE.md'), 'utf8').replace(/^```[\s\S]*?^```/gm, '')
  const paths = [...text.matchAll(/`([^`\n]+)`/g)].map(([, span]) => span).filter(span => path.test(span) && !elsewhere.has(span))
  return [...new Set(paths)]
    .filter(span => !existsSync(join(base, 'src', span)) && !existsSync(join(base, span)))
    .map(span => `ARCHITECTURE.md: ${span} does not exist`)
}

runAsMain(import.meta.url, () => {
  const found = [...missingNotes(), ...unknownPaths()]
  for (const line of found) console.log(line)
  process.exitCode = found.length === 0 ? 0 : 1
})
