import { describe, expect, test } from 'vitest'
import { withholdUsage } from '../../../src/gateway/wire/sse.ts'

const usage = 'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}\n\n'
const content = 'data: {"choices":[{"index":0,"delta":{"content":"Hi"}}]}\n\n'
async function* chunksOf(...texts: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text)
}
async function textOf(...texts: readonly string[]): Promise<string> {
  let text = ''
  for await (const chunk of withholdUsage(chunksOf(...texts))) text += Buffer.from(chunk).toString()
  return text
}

describe('a usage chunk that the caller does not want', () => {
  test('is taken out wherever the chunks are cut', async () => {
    const stream = `${content}${usage}data: [DONE]\n\n`
    for (let at = 1; at < stream.length; at++) expect(await textOf(stream.slice(0, at), stream.slice(at))).toBe(`${content}data: [DONE]\n\n`)
  })

  test('does not make the gateway keep an event without an end', async () => {
    const part = 'x'.repeat(1024 * 1024)
    let sentBytes = 0
    let gotBytes = 0
    async function* endless(): AsyncGenerator<Uint8Array> {
      for (let count = 0; count < 40; count++) {
        expect(sentBytes - gotBytes).toBeLessThan(10 * 1024 * 1024)
        sentBytes += part.length
        yield Buffer.from(part)
      }
    }
    for await (const chunk of withholdUsage(endless())) gotBytes += chunk.length
    expect(gotBytes).toBe(40 * part.length)
  })
})
