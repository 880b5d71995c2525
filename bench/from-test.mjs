/** Loads parts of the test harness that the bench runs unchanged. They import nothing but Node, so that they can be loaded separately. */
import { readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { transformSync } from '@swc/core'
import { root } from '../scripts/paths.mjs'

/** Returns the module of that file of test/harness. Its JavaScript is written into `folder`. */
export function fromHarness(name, folder) {
  const text = readFileSync(join(root, 'test', 'harness', name), 'utf8')
  const file = join(folder, `${basename(name, '.ts')}.mjs`)
  writeFileSync(file, transformSync(text, { filename: name, jsc: { parser: { syntax: 'typescript' }, target: 'es2022' }, module: { type: 'es6' } }).code)
  return import(pathToFileURL(file).href)
}
