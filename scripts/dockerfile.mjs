/**
 * Reads the Dockerfile and .dockerignore, for the build of the image and for the test of both files. It supports only the syntax that this project
 * uses.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './paths.mjs'

/**
 * Returns the instructions in order: the word, its flags (`--from=build` as `{from: 'build'}`) and the rest of its line.
 * @param {string} text
 * @returns {{ word: string, flags: Record<string, string>, rest: string }[]}
 */
export function instructionsOf(text) {
  return text
    .split('\n')
    .filter(line => !line.startsWith('#'))
    .join('\n')
    .replaceAll('\\\n', ' ')
    .split('\n')
    .filter(line => line.trim() !== '')
    .map(line => {
      const [, word, after] = /^(\w+)\s+(.*)$/.exec(line)
      const flags = {}
      let rest = after
      for (let match = /^--(\w[\w-]*)=(\S+)\s+/.exec(rest); match !== null; match = /^--(\w[\w-]*)=(\S+)\s+/.exec(rest)) {
        flags[match[1]] = match[2]
        rest = rest.slice(match[0].length)
      }
      return { word, flags, rest }
    })
}

export const dockerfile = () => instructionsOf(readFileSync(join(root, 'Dockerfile'), 'utf8'))

/** Returns the NAME=value pairs of ENV as an object. */
export const pairsOf = rest => Object.fromEntries(rest.split(/\s+/).map(pair => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]))

/**
 * Returns a function that says whether the build context contains a path of the checkout. Paths have slashes. The last pattern that matches the path, or a
 * folder above it, decides.
 */
export function buildContext(text = readFileSync(join(root, '.dockerignore'), 'utf8')) {
  const rules = text
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '' && !line.startsWith('#'))
    .map(line => ({ isKept: line.startsWith('!'), pattern: patternOf(line.replace(/^!/, '')) }))
  return path => {
    const parts = path.split('/')
    const names = parts.map((_, index) => parts.slice(0, index + 1).join('/'))
    let isSeen = true
    for (const { isKept, pattern } of rules) if (names.some(name => pattern.test(name))) isSeen = isKept
    return isSeen
  }
}

/** Converts the pattern to a regular expression. `*` is any text within a name, and a double star is any number of folders. */
function patternOf(glob) {
  const source = glob
    .split('/')
    .map(part =>
      part === '**'
        ? '**'
        : part
            .replace(/[.+^${}()|[\]\\]/g, '\\$&')
            .replaceAll('*', '[^/]*')
            .replaceAll('?', '[^/]'),
    )
    .join('/')
    .replaceAll('**/', '(?:.*/)?')
  return new RegExp(`^${source}$`)
}
