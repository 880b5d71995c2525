import fc from 'fast-check'
import { expect, test } from 'vitest'
import { lookAhead } from '../../../src/gateway/wire/json/json-body.ts'
import { hasDoubles } from '../../../src/gateway/wire/json/json-doubles.ts'
import { editMembers, type JsonMember, membersInTurns, topLevelMembers } from '../../../src/gateway/wire/json/json-members.ts'
import { inferenceBounds } from '../../../src/gateway/wire/json/json-scan.ts'

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

test('the scan of a long body knows its members, and edits of edits give the same bytes as with a search', async () => {
  const places = (members: readonly JsonMember[]) => members.map(({ name, start, valueStart, end }) => ({ name, start, valueStart, end }))
  const texts = fc.dictionary(fc.constantFrom('pad', 'same', 'model', 'a', '\u{1f511}"'), fc.option(fc.jsonValue(), { nil: undefined }))
  await fc.assert(
    fc.asyncProperty(
      fc.dictionary(fc.string(), fc.jsonValue()),
      fc.array(texts, { maxLength: 3 }),
      fc.constantFrom(undefined, 2),
      async (value, edits, space) => {
        const more = JSON.stringify({ same: { a: [1] }, ...value, '': 1 }, null, space).slice(1)
        const text = `{ "model" : 1, "pad" :\n"${'x\\":'.repeat(15_000)}" ,"same":[{"b":{}}],"\\u0061":2, ${more}  `
        let scanned: Buffer = Buffer.from(text)
        await lookAhead(scanned, inferenceBounds)
        let searched: Buffer = Buffer.from(text)
        for (const each of edits) {
          const changes = new Map(Object.entries(each).map(([name, made]) => [name, made === undefined ? undefined : JSON.stringify(made)]))
          scanned = editMembers(scanned, changes)
          searched = editMembers(searched, changes)
          expect(scanned.equals(searched)).toBe(true)
        }
        expect(places(topLevelMembers(scanned))).toEqual(places(topLevelMembers(Buffer.from(searched))))
        const parsed = JSON.parse(searched.toString())
        expect(hasDoubles(scanned, parsed)).toBe(hasDoubles(Buffer.from(searched), parsed))
      },
    ),
  )
})

test('members are known wherever the pieces of a scan end', async () => {
  const members = Array.from({ length: 9000 }, (_, index) => `"name ${index}\\"" : [${index}, {"a":"${'é:,'.repeat(8)}"}]`).join(' ,\n')
  for (let shift = 0; shift < 64; shift += 5) {
    const text = `${' '.repeat(shift)}{${members}}`
    const scanned = Buffer.from(text)
    await lookAhead(scanned, inferenceBounds)
    const bare = ({ name, start, valueStart, end }: JsonMember) => [name, start, valueStart, end]
    expect(topLevelMembers(scanned).map(bare)).toEqual(topLevelMembers(Buffer.from(text)).map(bare))
    expect(hasDoubles(scanned, JSON.parse(text))).toBe(false)
  }
})
