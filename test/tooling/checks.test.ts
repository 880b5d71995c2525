/** Tests the checks of `npm run check`: every rule must report a file that breaks it. */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { messageFault } from '../../scripts/check-commits.mjs'
import { bannedWords, exempt } from '../../scripts/check-english.mjs'
import { misplacedGlobals } from '../../scripts/check-globals.mjs'
import { brokenLinks } from '../../scripts/check-links.mjs'
import { missingNotes, unknownPaths } from '../../scripts/check-notes.mjs'
import { tooFull, tooLong } from '../../scripts/check-size.mjs'
import { foreignWords } from '../../scripts/check-words.mjs'
import { root } from '../../scripts/paths.mjs'
import { binOf, runTool } from '../../scripts/tools.mjs'

const fixtures = join(root, 'test', 'tooling', 'fixtures')

/**
 * Returns the rule that a fixture breaks: the longest rule name at the beginning of the file name. For example, `no-floating-promises-imported.ts` breaks
 * `noFloatingPromises`.
 */
function ruleBroken(file: string, ruleNames: readonly string[]): string | undefined {
  const camel = file.replace(/\.ts$/, '').replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
  const name = camel.charAt(0).toLowerCase() + camel.slice(1)
  return ruleNames.filter(rule => name.startsWith(rule)).sort((a, b) => b.length - a.length)[0]
}

test('every lint rule that biome.json switches on by name reports its fixture', () => {
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
    // These rules have no fixture, because options of the compiler refuse the same code.
    expect(unproven.sort()).toEqual(['noEnum', 'noNamespace', 'noParameterProperties', 'noUnusedImports'])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('the layer rules report a cycle, a forbidden type-only import, SQL of another domain and an import of the command line', () => {
  const { stdout } = runTool(binOf('dependency-cruiser', 'depcruise'), ['--config', join(root, '.dependency-cruiser.cjs'), '--output-type', 'json', 'src'], {
    cwd: join(fixtures, 'layers'),
  })
  const { summary } = JSON.parse(stdout)
  const broken: string[] = summary.violations.map((found: { rule: { name: string }; from: string }) => `${found.rule.name} ${found.from}`)
  expect(broken).toEqual(
    expect.arrayContaining([
      'platform-knows-nothing src/platform/errors.ts',
      'peers-of-memory src/memory/store.ts',
      'queries-of-gateway-limits-are-private src/gateway/keys/keys.ts',
      'nobody-imports-the-command-line src/operations/backup.ts',
      'the-operator-starts-the-gateway src/cli/account/login.ts',
      'no-cycles src/gateway/keys/keys.ts',
      'inference-knows-no-dialect src/gateway/inference/dial.ts',
      'sandbox-shares-nothing src/sandbox/server.ts',
      'console-imports-nothing-else src/console/app/main.tsx',
      'console-packages src/console/app/main.tsx',
      'nobody-imports-the-console src/operations/pages.ts',
    ]),
  )
})

test('the layer rules read the real sources', () => {
  const { stdout } = runTool(binOf('dependency-cruiser', 'depcruise'), ['--output-type', 'json', 'src'])
  expect(JSON.parse(stdout).summary.totalCruised).toBeGreaterThan(50)
})

test('the check reports unused files, exports and dependencies', () => {
  const { code, stdout } = runTool(binOf('knip', 'knip'), ['--reporter', 'json'], { cwd: join(fixtures, 'dead-code') })
  expect(code).not.toBe(0)
  for (const dead of ['orphan.ts', 'unusedExport', 'never-imported']) expect(stdout).toContain(dead)
})

test('the check reports time, random numbers, environment or SQL outside the allowed files, but not in comments', () => {
  const found = misplacedGlobals(join(fixtures, 'globals'))
  expect(
    found.map((line: string) => line.replace(/^src\/memory\/store\.ts:(\d+): (the clock|a timer|chance|the environment|SQL text).*$/s, '$1 $2')).sort(),
  ).toEqual(['1 chance', '4 the clock', '5 a timer', '6 chance', '7 the environment', '8 SQL text'].sort())
})

test('a file may contain up to three statements if it does not export them', () => {
  const folder = mkdtempSync(join(tmpdir(), 'brigade-sql-'))
  const statements = (count: number, prefix = '') =>
    Array.from({ length: count }, (_, index) => `${prefix}const find${index} = statement<[], never>('find', 'select id from orgs')\n`).join('')
  const foundIn = (text: string) => {
    writeFileSync(join(folder, 'src', 'orgs.ts'), text)
    return misplacedGlobals(folder).length
  }
  try {
    mkdirSync(join(folder, 'src'))
    expect([foundIn(statements(3)), foundIn(statements(4)), foundIn(statements(1, 'export '))]).toEqual([0, 4, 1])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('the check reports references to notes that a reader cannot open', () => {
  expect(foreignWords(join(fixtures, 'words'))).toHaveLength(2)
})

test('the check reports banned words in comments, texts and documents, but not in identifiers', () => {
  const folder = mkdtempSync(join(tmpdir(), 'brigade-english-'))
  const once = ['at', 'once'].join(' ')
  const lies = ['lies', 'in'].join(' ')
  const [again, is] = ['anew', 'stands']
  try {
    mkdirSync(join(folder, 'src'))
    mkdirSync(join(folder, 'test'))
    writeFileSync(join(folder, 'src', 'a.ts'), `/** Runs ${once}. */\nexport const ${again} = check.${is}('', ${again}, '')\n  // It ${lies} a folder.\n`)
    writeFileSync(join(folder, 'test', 'a.test.ts'), `test('it runs ${once}', () => {})\ntest('what a stand-in stands for', () => {})\n`)
    writeFileSync(join(folder, 'src', 'b.ts'), `/**\n * Runs ${once.replace(' ', '\n * ')}.\n */\nconst file = 1\n`)
    writeFileSync(join(folder, 'README.md'), `The key is made ${again}.\n`)
    expect(bannedWords(folder).map(line => line.split(':').slice(0, 3).join(':'))).toEqual([
      `src/a.ts:1: ${once}`,
      `src/a.ts:3: ${lies}`,
      `src/b.ts:2: ${once}`,
      `test/a.test.ts:1: ${once}`,
      `README.md:1: ${again}`,
    ])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('every file that is exempt from the check of English exists', () => {
  expect(exempt.filter(path => !existsSync(join(root, path)))).toEqual([])
})

test('the check reports broken links and links to missing headings', () => {
  const folder = mkdtempSync(join(tmpdir(), 'brigade-links-'))
  try {
    mkdirSync(join(folder, 'docs'))
    writeFileSync(
      join(folder, 'docs', 'a.md'),
      '# One `word` here\n\n[b](b.md) [own](#one-word-here) [gone](c.md) [site](https://example.com)\n\n```md\n[in code](d.md)\n```\n',
    )
    writeFileSync(join(folder, 'docs', 'b.md'), '[a](a.md#one-word-here) [no](a.md#two)\n')
    expect(brokenLinks(folder)).toEqual(['docs/a.md: c.md does not exist', 'docs/b.md: a.md#two has no such heading'])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('the check reports a decision that the code names but that does not exist, and a decision that no document links to', () => {
  const folder = mkdtempSync(join(tmpdir(), 'brigade-decisions-'))
  try {
    const decisions = join(folder, 'docs', 'internals', 'decisions')
    mkdirSync(decisions, { recursive: true })
    mkdirSync(join(folder, 'src'))
    writeFileSync(join(decisions, 'README.md'), '[Leases](limits.md#0020-leases)\n')
    writeFileSync(join(decisions, 'limits.md'), '# Limits\n\n## 0020 Leases\n\n## 0021 The last call\n')
    writeFileSync(join(folder, 'src', 'lease.ts'), '/** Decision 0020 says why. Decision 0022 does not. */\n')
    expect(brokenLinks(folder)).toEqual([
      'docs/internals/decisions/limits.md: no document links to decision 0021',
      'src/lease.ts: decision 0022 does not exist',
    ])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('the check reports a file of more than 500 lines and a folder of more than 12 files', () => {
  const folder = mkdtempSync(join(tmpdir(), 'brigade-size-'))
  try {
    cpSync(join(fixtures, 'globals', 'src'), join(folder, 'src'), { recursive: true })
    expect(tooLong(folder)).toEqual([])
    writeFileSync(join(folder, 'src', 'long.ts'), 'export {}\n'.repeat(501))
    expect(tooLong(folder)).toEqual(['src/long.ts: 501 lines; 500 is the limit'])
    expect(tooFull(folder)).toEqual([])
    for (let count = 0; count < 12; count++) writeFileSync(join(folder, 'src', `file-${count}.ts`), 'export {}\n')
    expect(tooFull(folder)).toEqual(['src: 13 files; 12 is the limit'])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('the check reports a domain without a README.md and a missing path in ARCHITECTURE.md', () => {
  const folder = mkdtempSync(join(tmpdir(), 'brigade-notes-'))
  try {
    for (const path of ['src/agents/toolkit', 'src/gateway/keys', 'src/memory/objects']) mkdirSync(join(folder, path), { recursive: true })
    for (const path of ['agents', 'agents/toolkit', 'gateway', 'memory']) writeFileSync(join(folder, 'src', path, 'README.md'), '# Note\n')
    expect(missingNotes(folder).map((line: string) => line.split(':')[0])).toEqual(['src/gateway/keys'])
    writeFileSync(
      join(folder, 'ARCHITECTURE.md'),
      '`gateway/keys/` and `src/agents/toolkit` for `POST /v1/x` and `access.scope`; not `gateway/gone.ts`\n\n```\nno/path.ts\n```\n',
    )
    expect(unknownPaths(folder)).toEqual(['ARCHITECTURE.md: gateway/gone.ts does not exist'])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('the check reports a commit message without an area, a verb with an object, or a body, and a long subject', () => {
  expect(messageFault('limits: end idle transactions after 10 s\n\nA frozen process held locks.\n')).toBeNull()
  expect(messageFault('fixes\n\nWhy.\n')).toContain('area: verb object')
  expect(messageFault('limits: fixes\n\nWhy.\n')).toContain('area: verb object')
  expect(messageFault('limits: end idle transactions.\n\nWhy.\n')).toContain('area: verb object')
  expect(messageFault('limits: end idle transactions\n')).toContain('body')
  expect(messageFault(`limits: end ${'x'.repeat(80)}\n\nWhy.\n`)).toContain('72')
})
