/**
 * Adds to package-lock.json the binaries of other platforms that were missing in the registry of the machine that made the lock file. Without them `npm ci`
 * refuses the lock file as incomplete, on every machine. Run it after any `npm install` that changed dependencies. When the name of a package shows no
 * platform, the script prints a warning and skips the package.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './paths.mjs'

const file = join(root, 'package-lock.json')
const lock = JSON.parse(readFileSync(file, 'utf8'))
const systems = ['aix', 'android', 'darwin', 'freebsd', 'linux', 'linuxmusl', 'netbsd', 'openbsd', 'openharmony', 'sunos', 'win32']
const processors = ['arm', 'arm64', 'ia32', 'loong64', 'mips64el', 'ppc64', 'riscv64', 's390x', 'x64']

/** Returns the platform in a name. `@oxc-parser/binding-linux-arm-musleabihf` is os linux, cpu arm, libc musl. */
function platformOf(name) {
  const words = name.replace(/^@[^/]+\//, '').split('-')
  const os = systems.find(system => words.includes(system))
  const cpu = processors.find(processor => words.includes(processor))
  if (os === undefined && !words.some(word => word.startsWith('wasm'))) return null
  const libc = words.some(word => word.includes('musl')) ? 'musl' : os === 'linux' && words.some(word => word.startsWith('gnu')) ? 'glibc' : undefined
  return { cpu: [cpu ?? 'wasm32'], ...(libc === undefined ? {} : { libc: [libc] }), os: os === undefined ? undefined : [os === 'linuxmusl' ? 'linux' : os] }
}

let added = 0
for (const [path, entry] of Object.entries(lock.packages)) {
  if (path === '') continue
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    if (lock.packages[`node_modules/${name}`] !== undefined || lock.packages[`${path}/node_modules/${name}`] !== undefined) continue
    const platform = platformOf(name)
    if (platform === null) {
      console.warn(`${name} (optional of ${path}) is not in the lock file and its name shows no platform`)
      continue
    }
    lock.packages[`node_modules/${name}`] = {
      version: version.replace(/^[\^~]/, ''),
      cpu: platform.cpu,
      ...(entry.dev ? { dev: true } : {}),
      ...(platform.libc ? { libc: platform.libc } : {}),
      optional: true,
      ...(platform.os ? { os: platform.os } : {}),
    }
    added++
  }
}
const [first, ...rest] = Object.entries(lock.packages)
lock.packages = Object.fromEntries([first, ...rest.sort(([a], [b]) => (a < b ? -1 : 1))])
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`)
console.log(`${added} packages of other platforms added`)
