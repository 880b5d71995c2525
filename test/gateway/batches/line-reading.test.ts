import { expect, test } from 'vitest'
import { linesOf } from '../../../src/gateway/batches/lines/line-reader.ts'
import { requestElements } from '../../../src/gateway/batches/lines/request-elements.ts'
import { resultLines } from '../../../src/gateway/batches/provider/result-lines.ts'

async function* cutAt(text: string, at: number): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(text)
  yield bytes.subarray(0, at)
  yield bytes.subarray(at)
}
const read = async (lines: AsyncIterable<{ readonly bytes: Buffer; readonly number: number }>): Promise<string[]> => {
  const found: string[] = []
  for await (const { bytes, number } of lines) found.push(`${number} ${bytes.toString()}`)
  return found
}

test('lines are the same wherever the bytes are cut', async () => {
  const text = 'one\r\n\ntwo é\nthree'
  for (let at = 0; at <= Buffer.byteLength(text); at++) expect(await read(linesOf(cutAt(text, at), 100))).toEqual(['1 one', '3 two é', '4 three'])
  await expect(read(linesOf(cutAt(text, 3), 4))).rejects.toThrow('Line 3 is longer than 4 bytes.')
})

test('requests of a list are the same wherever the bytes are cut', async () => {
  const elements = ['{"a":"]}\\"{"}', '{"b":[{"c":"\\\\"}]}']
  const text = ` {"requests" : [ ${elements.join(' ,\n')} ] } `
  const expected = elements.map((element, index) => `${index + 1} ${element}`)
  for (let at = 0; at <= text.length; at++) expect(await read(requestElements(cutAt(text, at), 100))).toEqual(expected)
  for (const broken of ['{"requests":[{}]', '{"requests":[{},]}', '{"requests":[{}],"x":1}', '[]', '{"requests":[1]}', '{"requests":[{}]}x'])
    await expect(read(requestElements(cutAt(broken, 2), 100)), broken).rejects.toMatchObject({ code: 'bad_request' })
  expect(await read(requestElements(cutAt('{"requests":[]}', 1), 100))).toEqual([])
})

test('a line of results keeps its usage wherever its bytes are cut, and loses numbers, long texts and deep parts', async () => {
  const long = `${'x'.repeat(505)}\\"\\u00e9\\\\`
  const deep = '[[[[[[[[[[{"a":1}]]]]]]]]]]'
  const data = `[{"embedding":[0.5,-1e-3, 2]},{"embedding":"${long}${'y'.repeat(700)}"}]`
  const text = `{"id":"a","body":{"data":${data},"deep":${deep},"flags":[1,true,null],"usage":{"prompt_tokens":7,"details":[1,{"x":2}]}}}\r\n\n{"b":[]}`
  const readResults = async (at: number) => {
    const found: unknown[] = []
    for await (const line of resultLines(cutAt(text, at), 2000)) found.push(line === null ? null : JSON.parse(line.toString()))
    return found
  }
  const whole = await readResults(0)
  expect(whole).toEqual([
    {
      id: 'a',
      body: {
        data: [{ embedding: [] }, { embedding: expect.stringMatching(/^x{505}"é\\y{0,10}$/) }],
        deep: [[[[[[]]]]]],
        flags: [true, null],
        usage: { prompt_tokens: 7, details: [{ x: 2 }] },
      },
    },
    { b: [] },
  ])
  for (let at = 0; at <= text.length; at++) expect(await readResults(at)).toEqual(whole)
})

test('a line of results that is too long is skipped, and the next one is read', async () => {
  const text = `{"a":${JSON.stringify(Array.from({ length: 100 }, () => ({})))}}\n{"b":1}\n`
  const found: unknown[] = []
  for await (const line of resultLines(cutAt(text, 50), 100)) found.push(line?.toString() ?? null)
  expect(found).toEqual([null, '{"b":1}'])
})
