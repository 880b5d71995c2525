/**
 * Makes the package of the gateway: `npm run package [-- <folder>]` writes brigade-gateway-<version>.tgz into the folder, by default into the checkout. The
 * programs in it are bundled with the packages that they import, so that the package installs in a few seconds. Decision 0806 gives the reasons.
 */
import { execFile } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { bundledImports, bundleInto, keptDependencies } from './bundle.mjs'
import { ensure } from './ensure.mjs'
import { root, runAsMain } from './paths.mjs'
import { thirdPartyLicences } from './third-party.mjs'

const dist = join(root, 'dist')
const licencesName = 'THIRD-PARTY-LICENSES'

/** Returns the package.json of the package: without what only a checkout needs, and with the dependencies that are not bundled. */
function manifestOf({ scripts, workspaces, devDependencies, dependencies, files, ...rest }) {
  const kept = Object.fromEntries(keptDependencies.map(name => [name, dependencies[name]]))
  return { ...rest, imports: bundledImports, files: [...files, licencesName], dependencies: kept }
}

/** Writes the content of the package into a new folder. dist/ must be built with types. */
export async function stagePackage(folder) {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifestOf(manifest), null, 2)}\n`)
  // npm leaves out what `files` in package.json excludes.
  const copied = manifest.files.filter(name => !name.startsWith('!') && name.split('/')[0] !== 'dist')
  for (const name of [...copied, 'README.md', 'LICENSE']) cpSync(join(root, name), join(folder, name), { recursive: true })
  const moduleIds = await bundleInto(join(folder, 'dist'))
  writeFileSync(join(folder, licencesName), thirdPartyLicences(moduleIds))
  // A browser or another bundler may read the toolkit, so its files stay as they are. They import only each other.
  for (const part of ['console', join('agents', 'toolkit')]) cpSync(join(dist, part), join(folder, 'dist', part), { recursive: true })
  const embedded = join('platform', 'db', 'embedded')
  for (const name of readdirSync(join(dist, embedded)).filter(each => each.startsWith('new-database-')))
    cpSync(join(dist, embedded, name), join(folder, 'dist', embedded, name))
  for (const path of Object.values(manifest.bin)) chmodSync(join(folder, path), 0o755)
}

/** Packs the content of a folder. Resolves with the path of the file. */
export async function packStaged(folder, into) {
  const words = ['pack', '--json', '--ignore-scripts', '--loglevel=error', '--pack-destination', into]
  const { stdout } = await promisify(execFile)('npm', words, { cwd: folder, maxBuffer: 16 << 20, shell: process.platform === 'win32' })
  const report = JSON.parse(stdout)
  const [{ filename }] = Array.isArray(report) ? report : Object.values(report)
  return join(into, filename)
}

runAsMain(import.meta.url, async () => {
  const into = resolve(process.argv[2] ?? root)
  if (!existsSync(into)) {
    console.error(`pack: there is no folder ${into}.`)
    process.exitCode = 1
    return
  }
  await ensure({ tools: true })
  const folder = mkdtempSync(join(tmpdir(), 'brigade-package-'))
  try {
    await stagePackage(folder)
    console.log(await packStaged(folder, into))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
