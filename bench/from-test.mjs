/** Loads files of the test harness that the bench uses unchanged. These files import only modules of Node, so each can be loaded alone. */
import { readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { transformSync } from '@swc/core'
import { root } from '../scripts/paths.mjs'

/** Returns the module of a file in test/harness. Its compiled JavaScript is written into `folder`. */
export function fromHarness(name, folder) {
  const text = readFileSync(join(root, 'test', 'harness', name), 'utf8')
  const file = join(folder, `${basename(name, '.ts')}.mjs`)
  writeFileSync(file, transformSync(text, { filename: name, jsc: { parser: { syntax: 'typescript' }, target: 'es2022' }, module: { type: 'es6' } }).code)
  return import(pathToFileURL(file).href)
}
