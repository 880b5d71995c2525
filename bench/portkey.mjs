/** The published npm package of Portkey's gateway, in a tool folder of the project. The bench only measures it. Brigade does not depend on it. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../scripts/paths.mjs'

const folder = join(root, '.tools', 'portkey')
const packageFolder = join(folder, 'node_modules', '@portkey-ai', 'gateway')
// These versions work. With the newest versions that the package allows, it answers every call with an error.
const overrides = { hono: '4.9.7', '@hono/node-server': '1.13.5' }
const manifest = { private: true, dependencies: { '@portkey-ai/gateway': '1.15.2', ...overrides }, overrides }

/** Returns the path of its server, with its version. Returns null when it is not installed. */
export function findPortkey() {
  const script = join(packageFolder, 'build', 'start-server.js')
  if (!existsSync(script)) return null
  return { script, version: JSON.parse(readFileSync(join(packageFolder, 'package.json'), 'utf8')).version }
}

/** Installs it with npm. Throws when npm fails. */
export function installPortkey() {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
  const args = ['install', '--no-audit', '--no-fund', '--loglevel=error']
  const npm = process.env.npm_execpath
  const run = npm?.endsWith('.js')
    ? spawnSync(process.execPath, [npm, ...args], { cwd: folder, stdio: ['ignore', 2, 2] })
    : spawnSync('npm', args, { cwd: folder, stdio: ['ignore', 2, 2], shell: process.platform === 'win32' })
  if (run.status !== 0) throw new Error('npm could not install @portkey-ai/gateway into .tools/portkey')
}
