/** Writes the licences of the packages whose code is in the package of the gateway, as their licences demand. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, sep } from 'node:path'
import { root } from './paths.mjs'

const licenceFile = /^(licen[cs]e|copying|notice)([.-].*)?$/i
const marker = `node_modules${sep}`

/** Returns the folder of the package that contains a module, or null for a module of this project. */
function folderOf(moduleId) {
  const path = moduleId.replace(/^\0/, '').replace(/\?.*$/, '')
  const at = path.lastIndexOf(marker)
  if (at === -1) return null
  const words = path.slice(at + marker.length).split(sep)
  return join(path.slice(0, at + marker.length), ...words.slice(0, words[0].startsWith('@') ? 2 : 1))
}

/** Returns the folder in which `from` finds a package, as Node looks for it. */
function folderSeenFrom(from, name) {
  for (let folder = from; folder.startsWith(root); folder = join(folder, '..')) {
    const found = join(folder, 'node_modules', name)
    if (existsSync(join(found, 'package.json'))) return found
  }
  return null
}

const manifestIn = folder => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))

/** Returns the folders of the packages of the console, with all that they depend on. Its build needs the others of scripts/build-packages only to run. */
function consoleFolders() {
  const { dependencies } = JSON.parse(readFileSync(join(root, 'scripts', 'build-packages', 'package.json'), 'utf8'))
  const found = new Set()
  const add = (from, name) => {
    const folder = folderSeenFrom(from, name)
    if (folder === null || found.has(folder)) return
    found.add(folder)
    for (const each of Object.keys(manifestIn(folder).dependencies ?? {})) add(folder, each)
  }
  for (const name of Object.keys(dependencies)) if (!['rolldown', 'vite'].includes(name)) add(root, name)
  return found
}

function licenceOf(folder) {
  const { name, version, license, repository } = manifestIn(folder)
  const files = readdirSync(folder).filter(file => licenceFile.test(file))
  const where = typeof repository === 'string' ? repository : repository?.url
  return {
    title: `${name} ${version} (${typeof license === 'string' ? license : (license?.type ?? 'see below')})${where === undefined ? '' : ` ${where}`}`,
    text: files.map(file => readFileSync(join(folder, file), 'utf8').replaceAll('\r\n', '\n').trim()).join('\n\n'),
  }
}

/**
 * Returns the text of THIRD-PARTY-LICENSES for the packages of these modules and of the console. Packages with the same text share it. Throws when a package
 * names no licence.
 */
export function thirdPartyLicences(moduleIds) {
  const folders = new Set([...moduleIds.map(folderOf).filter(folder => folder !== null), ...consoleFolders()])
  const byText = new Map()
  for (const { title, text } of [...folders].map(licenceOf).sort((a, b) => (a.title < b.title ? -1 : 1))) {
    if (title.includes('(see below)') && text === '') throw new Error(`${title} names no licence`)
    byText.set(text, [...(byText.get(text) ?? []), title])
  }
  const parts = [...byText].map(([text, titles]) => `${titles.join('\n')}\n\n${text === '' ? 'The package has no file with the text of its licence.' : text}`)
  return `This package contains code of the following packages.\n\n${parts.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`
}
