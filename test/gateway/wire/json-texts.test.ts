import { describe, expect, test } from 'vitest'
import { boundedObject, JsonTexts } from '../../../src/gateway/wire/json/json-texts.ts'

const nested = (depth: number): string => `{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`
const wide = (values: number): string => `{"a":[${Array(values).fill('1').join()}]}`

describe('JSON as text inside a body', () => {
  test('is returned as an object, and null is returned for everything else', () => {
    expect(boundedObject('{"a":[1,{"b":"]}"}]}')).toEqual({ a: [1, { b: ']}' }] })
    for (const text of ['', '{', '[]', 'null', '"{}"', '1', nested(200_000), nested(2500), wide(150_001)]) expect(boundedObject(text)).toBe(null)
  })

  test('is refused with the name of the bound if it is nested too deeply or has too many values', () => {
    expect(() => new JsonTexts().value(nested(200_000))).toThrow(/texts in the body.*nested too deeply: at most 128/)
    expect(() => new JsonTexts().value(wide(150_001))).toThrow(/texts in the body.*too many values: at most 150000/)
    expect(() => new JsonTexts().value('{')).toThrow(SyntaxError)
  })

  test('shares its bound with the other texts of the body, even if each is short', () => {
    const texts = new JsonTexts()
    const parse = (): void => {
      for (let count = 0; count < 200_000; count++) texts.value('[[],[],[]]')
    }
    expect(parse).toThrow(/too many values: at most 150000/)
  })

  test('may contain long strings and numbers of any length', () => {
    const long = JSON.stringify({ a: '[{,'.repeat(1_000_000) })
    expect(boundedObject(long)).toEqual(JSON.parse(long))
    expect(boundedObject(`{"a":${'1'.repeat(5000)}}`)).toEqual({ a: Number.POSITIVE_INFINITY })
  })
})
