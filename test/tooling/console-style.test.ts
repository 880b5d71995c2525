/** The style of the console names no colour and no distance of its own: both are variables of tokens.css. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const folder = join(import.meta.dirname, '..', '..', 'src', 'console')
const sheets = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter(name => name.endsWith('.css') && !name.endsWith('tokens.css'))
  .map(name => ({ name, text: readFileSync(join(folder, name), 'utf8').replace(/\/\*[\s\S]*?\*\//g, '') }))
const declarations = sheets.flatMap(({ name, text }) =>
  [...text.matchAll(/(?<![\w-])([a-z][a-z-]*):\s*([^;{}]+);/g)].map(([, property = '', value = '']) => ({ name, property, value })),
)
/** A distance that follows from the size of an icon or of a number beside a text. */
const aligned = /^padding-inline(-start)?$/

test('every colour is a variable of tokens.css', () => {
  expect(declarations.length).toBeGreaterThan(500)
  expect(declarations.filter(({ value }) => /#[0-9a-f]{3,8}\b|\b(rgb|hsl|oklch|light-dark)\(/.test(value))).toEqual([])
})

test('every padding and gap is a step of the scale, except beside an icon or a number', () => {
  const own = declarations
    .filter(({ property }) => /^(padding|gap|row-gap|column-gap)/.test(property) && !aligned.test(property))
    .filter(({ value }) => /\d(rem|px|em)\b/.test(value.replace(/calc\([^)]*env\([^)]*\)\)/g, '')))
  expect(own).toEqual([])
})
