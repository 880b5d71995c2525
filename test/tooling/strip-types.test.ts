/** `scripts/strip-types.mjs`, with which a checkout that only runs compiles the server. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { stripTypes } from '../../scripts/strip-types.mjs'
import { filesBelow } from '../../scripts/tools.mjs'

const folder = mkdtempSync(join(tmpdir(), 'brigade-strip-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('every file of the server is compiled, and no import of a file has the ending of TypeScript', async () => {
  const target = join(folder, 'whole')
  expect(await stripTypes(target)).toEqual([])
  const compiled = filesBelow('whole', (path: string) => path.endsWith('.js'), folder).map((path: string) => path.replace(/^whole/, 'src').replace(/js$/, 'ts'))
  expect(compiled).toEqual(filesBelow('src', (path: string) => path.endsWith('.ts') && !path.startsWith('src/console/')))
  const importOfSource = /(?:from |import\(|import )['"]\.[^'"]*\.ts['"]/
  expect(filesBelow('whole', (path: string) => path.endsWith('.js') && importOfSource.test(readFileSync(join(folder, path), 'utf8')), folder)).toEqual([])
})

test('the compiled program runs, and its map names the source', async () => {
  const base = join(folder, 'small')
  mkdirSync(join(base, 'src', 'part'), { recursive: true })
  writeFileSync(
    join(base, 'src', 'part', 'sum.ts'),
    'export interface Sum { readonly of: number }\nexport class Added { declare of: number; readonly more: number | undefined }\n',
  )
  const main =
    "import { Added, type Sum } from './part/sum.ts'\nexport const keys: string[] = Object.keys(new Added())\nexport const later = async (sum: Sum): Promise<number> => ((await import('./part/sum.ts')), sum.of)\n"
  writeFileSync(join(base, 'src', 'main.ts'), main)
  const target = join(base, 'made')
  expect(await stripTypes(target, base)).toEqual([])
  writeFileSync(join(base, 'package.json'), '{"type":"module"}')
  const { keys, later } = await import(pathToFileURL(join(target, 'main.js')).href)
  // As with tsc, a field without a value exists, and a declared one does not.
  expect([keys, await later({ of: 3 })]).toEqual([['more'], 3])
  expect(JSON.parse(readFileSync(join(target, 'main.js.map'), 'utf8'))).toMatchObject({ sources: ['../src/main.ts'], sourcesContent: [main] })
})

test('an error of the syntax names its file', async () => {
  const base = join(folder, 'broken')
  mkdirSync(join(base, 'src'), { recursive: true })
  writeFileSync(join(base, 'src', 'main.ts'), 'export const one = (\n')
  expect(await stripTypes(join(base, 'made'), base)).toEqual([expect.stringContaining('src/main.ts')])
})
