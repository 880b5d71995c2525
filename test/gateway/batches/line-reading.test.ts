import { expect, test } from 'vitest'
import { linesOf } from '../../../src/gateway/batches/lines/line-reader.ts'
import { requestElements } from '../../../src/gateway/batches/lines/request-elements.ts'

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
