import { createHash } from 'node:crypto'
import { pieces } from '../answer.ts'
import type { Exchange } from '../exchange.ts'
import { openAiError, refuseModel } from '../models.ts'

/** The length of a vector, unless the request asks for fewer `dimensions`. */
const fullDimensions = 1024

/** Serves POST /v1/embeddings. The results are deterministic unit vectors, as floats or as base64 of little-endian 32-bit floats. */
export async function openAiEmbeddings(exchange: Exchange): Promise<void> {
  const body = await exchange.body()
  const input = typeof body?.['input'] === 'string' ? [body['input']] : body?.['input']
  const model = body?.['model']
  if (typeof model !== 'string' || !Array.isArray(input) || input.length === 0 || !input.every(text => typeof text === 'string'))
    return exchange.json(400, openAiError('Send "model" and "input": a string or a non-empty array of strings.', 'invalid_request_error', null, 'input'))
  if (refuseModel(exchange, model, ['sandbox-embed'])) return
  const dimensions = body?.['dimensions'] ?? fullDimensions
  if (typeof dimensions !== 'number' || !Number.isInteger(dimensions) || dimensions < 1 || dimensions > fullDimensions)
    return exchange.json(400, openAiError(`"dimensions" must be a whole number from 1 to ${fullDimensions}.`, 'invalid_request_error', null, 'dimensions'))
  const data = input.map((text: string, index) => {
    const vector = unitVector(text, dimensions)
    return {
      object: 'embedding',
      index,
      embedding: body?.['encoding_format'] === 'base64' ? Buffer.from(vector.buffer).toString('base64') : Array.from(vector),
    }
  })
  const tokens = input.reduce((sum: number, text: string) => sum + Math.max(1, pieces(text).length), 0)
  exchange.json(200, { object: 'list', model, data, usage: { prompt_tokens: tokens, total_tokens: tokens } })
}

/** Returns the sum of one fixed pseudo-random vector for each word, scaled to length 1. So texts that share words have similar vectors. */
function unitVector(text: string, dimensions: number): Float32Array {
  const sum = new Float64Array(dimensions)
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [text]
  for (const word of words) {
    let state = createHash('sha256').update(word).digest().readUInt32LE(0) | 1
    for (let at = 0; at < dimensions; at++) {
      // xorshift32 distributes words well enough over the sphere, and gives the same result on every machine.
      state ^= state << 13
      state ^= state >>> 17
      state ^= state << 5
      sum[at] = (sum[at] ?? 0) + state / 2 ** 31
    }
  }
  const length = Math.hypot(...sum)
  return Float32Array.from(sum, value => value / length)
}
