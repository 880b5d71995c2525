import { expect, test } from 'vitest'
import { cleanName } from '../../src/platform/values/clean-name.ts'

const isTaken = (name: string): boolean => {
  try {
    cleanName(name)
    return true
  } catch {
    return false
  }
}

test('EDGE-13 a name with invisible characters, or characters that change the direction of text, is refused because two such names look the same', () => {
  const unseen = [
    '\u200b',
    '\u200c',
    '\u200d',
    '\u200e',
    '\u202e',
    '\u2066',
    '\u2069',
    '\u061c',
    '\u2060',
    '\ufeff',
    '\u00ad',
    '\u2028',
    '\ufe0f',
    '\u{e0041}',
    '\u3164',
  ]
  for (const sign of unseen) for (const name of [`ad${sign}min`, `a${sign}b${sign}c`]) expect(isTaken(name), JSON.stringify(name)).toBe(false)
})

test('EDGE-13 invisible joiners are allowed where scripts and emoji need them', () => {
  for (const name of ['क्\u200dष', 'മന്\u200dത്രി', 'می\u200cخواهم', '👩\u200d💻 helper', '❤\ufe0f\u200d🔥', 'Zoë', 'агент', '代理'])
    expect(isTaken(name), name).toBe(true)
})
