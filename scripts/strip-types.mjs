/**
 * Compiles the server of src/ to a folder without checking its types: `node scripts/strip-types.mjs <folder>`. The files are those that tsc makes, without
 * the types. It needs no TypeScript, so a checkout that only runs installs none. Decision 0808 says why.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, sep } from 'node:path'
import { transform } from 'rolldown/utils'
import { root, runAsMain } from './paths.mjs'
import { filesBelow } from './tools.mjs'

const { compilerOptions } = JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8'))

/** The options that mean the same to TypeScript: imports of types go, others stay, and `.ts` in an import becomes `.js`. */
const options = {
  lang: 'ts',
  sourceType: 'module',
  sourcemap: true,
  target: compilerOptions.target,
  tsconfig: false,
  typescript: { onlyRemoveTypeImports: compilerOptions.verbatimModuleSyntax, rewriteImportExtensions: compilerOptions.rewriteRelativeImportExtensions },
}

/** Compiles one file into a folder. Returns the errors of its syntax. */
async function compile(base, path, folder) {
  const source = join(base, path)
  const { code, map, errors } = await transform(source, readFileSync(source, 'utf8'), options)
  if (errors.length > 0) return errors.map(({ message, codeframe }) => `${path}: ${message}\n${codeframe ?? ''}`)
  const target = join(folder, relative('src', path)).replace(/\.ts$/, '.js')
  mkdirSync(dirname(target), { recursive: true })
  const sources = [relative(dirname(target), source).split(sep).join('/')]
  writeFileSync(`${target}.map`, JSON.stringify({ ...map, sources, file: basename(target) }))
  writeFileSync(target, `${code}\n//# sourceMappingURL=${basename(target)}.map\n`, { mode: 0o644 })
  return []
}

/** Compiles the server of a checkout into a folder. Returns one text for each error. */
export async function stripTypes(folder, base = root) {
  const paths = filesBelow('src', path => path.endsWith('.ts') && !path.startsWith('src/console/'), base)
  return (await Promise.all(paths.map(path => compile(base, path, folder)))).flat()
}

runAsMain(import.meta.url, async () => {
  const errors = await stripTypes(process.argv[2])
  for (const error of errors) console.error(error)
  process.exitCode = errors.length === 0 ? 0 : 1
})
