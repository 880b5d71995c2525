import fc from 'fast-check'
import { expect, test } from 'vitest'
import { hasDoubles } from '../../../src/gateway/wire/json/json-doubles.ts'
import { editMembers, membersInTurns, topLevelMembers } from '../../../src/gateway/wire/json/json-members.ts'

const edit = (text: string, edits: Record<string, string | undefined>): string => editMembers(Buffer.from(text), new Map(Object.entries(edits))).toString()

test('editMembers changes, removes and adds members and keeps every other byte', () => {
  expect(edit('{ "a" : 1.0 , "b":{"a":[1,"}"]},"c":"x\\"}" }', { b: undefined })).toBe('{"a" : 1.0,"c":"x\\"}"}')
  expect(edit('{"a":1e1,"b":2}', { a: '"x"', z: '3' })).toBe('{"a":"x","b":2,"z":3}')
  expect(edit('{"a":1}', { a: undefined })).toBe('{}')
  expect(edit('{}', { a: '1' })).toBe('{"a":1}')
})

test('editMembers keeps the last of equal names, escaped or not', () => {
  expect(edit('{"model":"dear","\\u006dodel":"cheap"}', {})).toBe('{"\\u006dodel":"cheap"}')
})

test('membersInTurns finds outermost members across pieces, and ends for bytes that are not JSON', async () => {
  const find = async (text: string): Promise<Record<string, string>> =>
    Object.fromEntries([...(await membersInTurns(Buffer.from(text), new Set(['usage', 'model'])))].map(([name, value]) => [name, value.toString()]))
  const far = 'x\\"'.repeat(300_000)
  expect(await find(`{"a":"${far}","b":[{"usage":1}],"usage":{"c":[1,"}"]},"${far}":2,"model":"m"}`)).toEqual({ usage: '{"c":[1,"}"]}', model: '"m"' })
  expect(await find('{"usage":1,"usage": 2 }')).toEqual({ usage: ' 2 ' })
  for (const text of ['', '{', '{}', '{},"usage":1', '{"usage"', '{"usage":', '{"usage":"', '}}', '"usage":1', '[{"usage":1}]', ',,::'])
    expect([text, await find(text)]).toEqual([text, {}])
})

test('hasDoubles finds a repeated name at any depth and in any spelling, and reports no other name', () => {
  const doubles = (text: string): boolean => hasDoubles(Buffer.from(text), JSON.parse(text))
  for (const text of [
    '{"model":"dear","\\u006dodel":"cheap"}',
    '{"a":1,"a":null}',
    '{"t":[{"x":{"a":1,"b":2,"a":3}}]}',
    `{"long":"${'x'.repeat(100)}\\"","a":{"b":[],"b":{}}}`,
    '{"__proto__":1,"__proto__":2}',
  ])
    expect([text, doubles(text)]).toEqual([text, true])
  for (const text of [
    '{}',
    '{"\\u006dodel":1}',
    '{"model":1,"a":{"model":2}}',
    '{"a":"b\\":\\\\","c":":::"}',
    `{"a":"${'x'.repeat(47)}\\":${'y'.repeat(60)}\\\\","b":[{"c":1},{"c":":"}], "__proto__" : {"d":1}}`,
  ])
    expect([text, doubles(text)]).toEqual([text, false])
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(undefined, 2), (value, space) => {
      const text = JSON.stringify({ value, same: value }, null, space)
      expect(doubles(text)).toBe(false)
      expect(doubles(text.replace('{', '{"same":[{"q":1}],'))).toBe(true)
    }),
  )
})

test('an edit of one member keeps all other members of any object', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.constantFrom(undefined, 2), (value, space) => {
      const text = JSON.stringify(value, null, space)
      const parsed: Record<string, unknown> = JSON.parse(text)
      const bytes = Buffer.from(text)
      expect(topLevelMembers(bytes).map(({ name, valueStart, end }) => [name, JSON.parse(bytes.toString('utf8', valueStart, end))])).toEqual(
        Object.entries(parsed),
      )
      expect(editMembers(bytes, new Map([['\u{1f511} none of them', undefined]]))).toBe(bytes)
      const [first] = Object.keys(parsed)
      if (first === undefined) return
      const { [first]: _gone, ...rest } = parsed
      expect(JSON.parse(editMembers(bytes, new Map([[first, undefined]])).toString())).toEqual(rest)
    }),
  )
})
