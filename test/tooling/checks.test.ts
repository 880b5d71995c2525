/** A check that cannot fail is worse than none: every rule that `npm run check` relies on is shown a file that breaks it. */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { misplacedGlobals } from '../../scripts/check-globals.mjs'
import { tooLong } from '../../scripts/check-size.mjs'
import { foreignWords } from '../../scripts/check-words.mjs'
import { root } from '../../scripts/paths.mjs'
import { binOf, runTool } from '../../scripts/tools.mjs'

const fixtures = join(root, 'test', 'tooling', 'fixtures')

/** `no-floating-promises-imported.ts` breaks `noFloatingPromises`: the longest rule name that the file name begins with. */
function ruleBroken(file: string, ruleNames: readonly string[]): string | undefined {
  const camel = file.replace(/\.ts$/, '').replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
  const name = camel.charAt(0).toLowerCase() + camel.slice(1)
  return ruleNames.filter(rule => name.startsWith(rule)).sort((a, b) => b.length - a.length)[0]
}

test('every lint rule that we switch on by name reports the fixture that breaks it', () => {
  const config = JSON.parse(readFileSync(join(root, 'biome.json'), 'utf8'))
  const groups: Record<string, unknown>[] = Object.values(config.linter.rules).filter(
    (group): group is Record<string, unknown> => typeof group === 'object' && group !== null,
  )
  const switchedOn = groups.flatMap(group =>
    Object.entries(group)
      .filter(([, level]) => level !== 'off')
      .map(([name]) => name),
  )
  const folder = mkdtempSync(join(tmpdir(), 'brigade-lint-'))
  try {
    cpSync(join(fixtures, 'biome'), join(folder, 'src'), { recursive: true })
    writeFileSync(join(folder, 'biome.json'), JSON.stringify({ linter: config.linter }))
    const { stdout } = runTool(binOf('@biomejs/biome', 'biome'), ['lint', '--reporter=json', '--max-diagnostics=none', '.'], { cwd: folder })
    const reported = JSON.parse(stdout).diagnostics.map(
      (found: { category: string; location: { path: string } }) => `${found.location.path.replace(/^.*src\//, '')} ${found.category.split('/').at(-1)}`,
    )
    const expected = readdirSync(join(fixtures, 'biome')).flatMap(file => {
      const rule = ruleBroken(file, switchedOn)
      return rule === undefined ? [] : [{ file, rule }]
    })
    expect(expected.filter(({ file, rule }) => !reported.includes(`${file} ${rule}`))).toEqual([])
    const unproven = switchedOn.filter(rule => !expected.some(pair => pair.rule === rule))
    // These come from the compiler's own options too, which refuse the same code.
    expect(unproven.sort()).toEqual(['noEnum', 'noNamespace', 'noParameterProperties', 'noUnusedImports'])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('the layer rules report a cycle, a type-only import across a wall and foreign queries', () => {
  const { stdout } = runTool(binOf('dependency-cruiser', 'depcruise'), ['--config', join(root, '.dependency-cruiser.cjs'), '--output-type', 'json', 'src'], {
    cwd: join(fixtures, 'layers'),
  })
  const { summary } = JSON.parse(stdout)
  const broken: string[] = summary.violations.map((found: { rule: { name: string }; from: string }) => `${found.rule.name} ${found.from}`)
  expect(broken).toEqual(
    expect.arrayContaining([
      'platform-knows-nothing src/platform/errors.ts',
      'peers-of-memory src/memory/store.ts',
      'queries-are-private src/gateway/keys/keys.ts',
      'no-cycles src/gateway/keys/keys.ts',
      'inference-knows-no-dialect src/gateway/inference/dial.ts',
      'sandbox-shares-nothing src/sandbox/server.ts',
    ]),
  )
})

test('the layer rules read the real sources', () => {
  const { stdout } = runTool(binOf('dependency-cruiser', 'depcruise'), ['--output-type', 'json', 'src'])
  expect(JSON.parse(stdout).summary.totalCruised).toBeGreaterThan(50)
})

test('dead files, exports and dependencies are reported', () => {
  const { code, stdout } = runTool(binOf('knip', 'knip'), ['--reporter', 'json'], { cwd: join(fixtures, 'dead-code') })
  expect(code).not.toBe(0)
  for (const dead of ['orphan.ts', 'unusedExport', 'never-imported']) expect(stdout).toContain(dead)
})

test('time, chance, environment and SQL outside their homes are reported, comments are not', () => {
  const found = misplacedGlobals(join(fixtures, 'globals'))
  expect(
    found.map((line: string) => line.replace(/^src\/memory\/store\.ts:(\d+): (the clock|a timer|chance|the environment|SQL text).*$/s, '$1 $2')).sort(),
  ).toEqual(['1 chance', '4 the clock', '5 a timer', '6 chance', '7 the environment', '8 SQL text'].sort())
})

test('pointers to what a reader cannot open are reported', () => {
  expect(foreignWords(join(fixtures, 'words'))).toHaveLength(2)
})

test('a file of more than 400 lines is reported', () => {
  const folder = mkdtempSync(join(tmpdir(), 'brigade-size-'))
  try {
    cpSync(join(fixtures, 'globals', 'src'), join(folder, 'src'), { recursive: true })
    expect(tooLong(folder)).toEqual([])
    writeFileSync(join(folder, 'src', 'long.ts'), 'export {}\n'.repeat(401))
    expect(tooLong(folder)).toEqual(['src/long.ts: 401 lines; 400 is the limit'])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
