/**
 * What a newcomer does on an empty machine, with the real npm and its registry: installs the packed file, and runs `npm start` in a fresh clone. Each has an
 * empty home folder. The times that the project promises are measured by scripts/first-minute.mjs on a quiet machine.
 */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ensure } from '../../scripts/ensure.mjs'
import { ask, copyClone, newcomer, npm, packed, reachesRegistry, started } from '../../scripts/first-minute.mjs'
import { root } from '../../scripts/paths.mjs'
import { parsed, ask as scrape } from '../harness/prometheus.ts'

const run = promisify(execFile)
/** The processor time of a first start, in seconds. Beside other tests the clock says little. */
const startCpuMaxSeconds = 15
const folder = mkdtempSync(join(tmpdir(), 'brigade-minute-'))
afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }), 300_000)

interface Lock {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean }>>
}
const readJson = (...path: string[]) => JSON.parse(readFileSync(join(...path), 'utf8'))
/** The packages of the lock file that only tests and checks need, or that only the build needs. */
const toolPaths = Object.entries((readJson(root, 'package-lock.json') as Lock).packages).flatMap(([path, { dev }]) => (dev === true ? [path] : []))
const buildNames: string[] = Object.keys(readJson(root, 'scripts/build-packages/package.json').dependencies)

const there = await reachesRegistry()
const title = there ? 'with the registry of npm' : 'on registry-of-npm (not installed)'

describe.runIf(there)(`the packed file, ${title}`, () => {
  const project = join(folder, 'project')
  const home = join(folder, 'home')
  const data = join(home, '.brigade')
  let env: Record<string, string> = {}
  let first = ''
  let key = ''
  beforeAll(async () => {
    await ensure({ types: true })
    env = await newcomer(home)
    first = await packed(folder)
    mkdirSync(project)
    await npm(['install', first], project, env)
  }, 600_000)

  test('FIRST-10 a packed file runs in an empty folder without a build, starts below 15 s, and keeps its data in ~/.brigade', {
    timeout: 120_000,
  }, async () => {
    const gateway = await started('npx', ['brigade-gateway'], project, env)
    try {
      const { text } = await scrape(`${gateway.url}/metrics`)
      expect(parsed(text).get('process_cpu_seconds_total')).toBeLessThan(startCpuMaxSeconds)
      key = gateway.key ?? ''
      await ask(gateway, key)
      // The console is in the file, and answers a browser.
      const page = await fetch(`${gateway.url}/console/`, { headers: { accept: 'text/html' } })
      expect([page.status, page.headers.get('content-type')]).toEqual([200, expect.stringContaining('text/html')])
    } finally {
      await gateway.stop()
    }
    expect(readdirSync(data)).toEqual(expect.arrayContaining(['db', 'journal', 'master.key']))
    expect(statSync(data).mode & 0o777).toBe(0o700)
    expect(readdirSync(project).sort()).toEqual(['node_modules', 'package-lock.json', 'package.json'])
    const installed = (path: string): boolean => existsSync(join(project, path))
    // The packages of the project itself: some of theirs have a name that a package of the gateway has too.
    const development = Object.keys(readJson(root, 'package.json').devDependencies)
    expect([...development, ...buildNames].filter(name => installed(`node_modules/${name}`))).toEqual([])
    for (const command of ['brigade', 'brigade-gateway']) expect(installed(`node_modules/.bin/${command}`), command).toBe(true)
  })

  test('the packed file has what the gateway reads, and no test, source, map or picture', () => {
    const inside = readdirSync(join(project, 'node_modules', 'brigade-gateway'), { recursive: true, encoding: 'utf8' })
    const files = inside.map(path => path.replaceAll('\\', '/'))
    for (const needed of [
      'dist/main.js',
      'dist/console/index.html',
      'catalog/models.json',
      'migrations/0001_orgs.sql',
      'dist/agents/toolkit/toolkit.d.ts',
      'LICENSE',
    ])
      expect(files).toContain(needed)
    expect(
      files.filter(path => /^(src|test|scripts|bench)\/|\.map$|^docs\/(images|internals)|\.ts$/.test(path) && !path.startsWith('dist/agents/toolkit/')),
    ).toEqual([])
    expect(statSync(first).size).toBeLessThan(9_000_000)
  })

  test('both commands find the settings and the data in ~/.brigade, and the environment has priority', { timeout: 240_000 }, async () => {
    writeFileSync(join(data, '.env'), 'BASE_URL=http://gateway.test\nLOG_LEVEL=error\n')
    const gateway = await started('npx', ['brigade-gateway'], project, { ...env, BASE_URL: 'http://127.0.0.1:8999' })
    try {
      expect(gateway.url).toBe('http://127.0.0.1:8999')
      for (const words of [['brigade'], ['brigade-gateway']]) {
        const { stdout } = await run('npx', [...words, 'admin', 'sign-in', '--email', 'owner@localhost'], { cwd: project, env })
        expect(stdout).toContain('http://127.0.0.1:8999/auth/link')
      }
    } finally {
      await gateway.stop()
    }
    const again = await started('npx', ['brigade-gateway'], project, env)
    await again.stop()
    expect(again.url).toBe('http://gateway.test')
    rmSync(join(data, '.env'))
  })

  test('FIRST-10 the next version is installed over it: it migrates the same data, and the key of the first start still answers', {
    timeout: 300_000,
  }, async () => {
    const second = await packed(folder, (copy: string) => {
      const manifest = readJson(copy, 'package.json')
      writeFileSync(join(copy, 'package.json'), JSON.stringify({ ...manifest, version: '99.0.0' }))
      writeFileSync(
        join(copy, 'migrations', '9999_next.sql'),
        '-- Additive: a table of the next version.\ncreate table next_version (id bigint primary key);\n',
      )
    })
    await npm(['install', second], project, env)
    const gateway = await started('npx', ['brigade-gateway'], project, env)
    try {
      await ask(gateway, key)
      expect(gateway.said()).toContain('9999_next.sql')
      expect(gateway.said()).toContain('Brigade 99.0.0')
    } finally {
      await gateway.stop()
    }
  })
})

describe.runIf(there)(`a fresh clone, ${title}`, () => {
  const clone = join(folder, 'clone')
  let env: Record<string, string> = {}
  beforeAll(async () => {
    env = await newcomer(join(folder, 'home-of-clone'))
    await copyClone(clone)
  })
  const missing = (paths: readonly string[]): string[] => paths.filter(path => !existsSync(join(clone, path)))

  test('npm start installs only what building and running need, and serves', { timeout: 600_000 }, async () => {
    const gateway = await started('npm', ['start'], clone, env)
    try {
      await ask(gateway, gateway.key)
    } finally {
      await gateway.stop()
    }
    expect(toolPaths.length).toBeGreaterThan(100)
    // npm also records a package that it left out for this platform, so the folders count.
    expect(missing(toolPaths)).toEqual(toolPaths)
    expect(missing(buildNames.map(name => `node_modules/${name}`))).toEqual([])
    expect(existsSync(join(clone, '.brigade', 'db'))).toBe(true)
    // The second start installs and builds nothing.
    const again = await started('npm', ['start'], clone, env)
    await again.stop()
    expect(again.said()).not.toMatch(/Installing|Building/)
  })

  test('npm test installs the rest on its first run, without a change of the lock file', { timeout: 600_000 }, async () => {
    const lock = readFileSync(join(clone, 'package-lock.json'), 'utf8')
    const { stdout } = await run('npm', ['test', '--', 'test/platform/money.test.ts'], { cwd: clone, env: { ...env, NO_COLOR: '1' }, maxBuffer: 16 << 20 })
    expect(stdout).toMatch(/Tests\s+\d+ passed/)
    expect(missing(['node_modules/vitest', 'node_modules/@biomejs/biome', 'node_modules/knip'])).toEqual([])
    expect(readFileSync(join(clone, 'package-lock.json'), 'utf8')).toBe(lock)
    const { stderr } = await run(process.execPath, ['scripts/ensure.mjs'], { cwd: clone, env })
    expect(stderr).toBe('')
  })
})

test.skipIf(there)('FIRST-10 installs are shown on registry-of-npm (not installed)', () => undefined)
