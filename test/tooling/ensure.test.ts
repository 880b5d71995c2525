/** `scripts/ensure.mjs` in a checkout whose node_modules is a link. */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'

/**
 * Makes a checkout that wants version 2.0.0 of a package, and a linter for its checks. Links its node_modules to a folder with the given version and without
 * the linter.
 */
function linked(version: string, options = '') {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'brigade-ensure-')))
  const checkout = join(folder, 'checkout')
  const other = join(folder, 'other', 'node_modules')
  mkdirSync(join(other, 'tool'), { recursive: true })
  writeFileSync(join(other, 'tool', 'index.js'), 'kept')
  writeFileSync(join(other, '.package-lock.json'), JSON.stringify({ packages: { 'node_modules/tool': { version } } }))
  cpSync(join(import.meta.dirname, '..', '..', 'scripts'), join(checkout, 'scripts'), { recursive: true })
  const packages = {
    '': { name: 'checkout', dependencies: { tool: '2.0.0' } },
    'node_modules/tool': { version: '2.0.0' },
    'node_modules/linter': { version: '1.0.0', dev: true },
  }
  writeFileSync(join(checkout, 'package.json'), JSON.stringify({ name: 'checkout', version: '1.0.0', dependencies: { tool: '2.0.0' } }))
  writeFileSync(join(checkout, 'package-lock.json'), JSON.stringify({ name: 'checkout', version: '1.0.0', lockfileVersion: 3, packages }))
  symlinkSync(other, join(checkout, 'node_modules'), 'dir')
  const script = `import { ensureInstalled } from './scripts/ensure.mjs'; await ensureInstalled(${options}); console.log('ready')`
  // No npm is on this PATH, so an install could not harm anything.
  const run = spawnSync(process.execPath, ['--input-type=module', '-e', script], { cwd: checkout, encoding: 'utf8', env: { PATH: '' } })
  return { other, run }
}

test('a node_modules that is a link to other packages is not installed into, and the message names its folder', () => {
  const { other, run } = linked('1.0.0')
  expect([run.status, run.stdout]).toEqual([1, ''])
  expect(run.stderr).toContain(`node_modules is a link to ${other}`)
  expect(run.stderr).toContain('Remove the link')
  expect(readFileSync(join(other, 'tool', 'index.js'), 'utf8')).toBe('kept')
})

test('a node_modules that is a link to the right packages is used and not written to', () => {
  const { other, run } = linked('2.0.0')
  expect([run.status, run.stdout.trim(), run.stderr]).toEqual([0, 'ready', ''])
  expect(existsSync(join(other, '.installed-from'))).toBe(false)
})

test('a start needs no package that only checks use, and a check does', () => {
  expect(linked('2.0.0').run.status).toBe(0)
  const { run } = linked('2.0.0', '{ tools: true }')
  expect([run.status, run.stdout]).toEqual([1, ''])
  expect(run.stderr).toContain('node_modules is a link')
})

test('the packages of the build are named without versions, and each is a development package of the project', () => {
  const read = (path: string) => JSON.parse(readFileSync(join(import.meta.dirname, '..', '..', path), 'utf8'))
  const build: Record<string, string> = read('scripts/build-packages/package.json').dependencies
  expect(new Set(Object.values(build))).toEqual(new Set(['*']))
  const { devDependencies } = read('package.json')
  expect(Object.keys(build).filter(name => devDependencies[name] === undefined)).toEqual([])
})
