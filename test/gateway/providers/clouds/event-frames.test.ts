import { crc32 } from 'node:zlib'
import { encodeEventStreamFrame } from '@copilotkit/aimock'
import { expect, test } from 'vitest'
import { EventFrames, framesOf } from '../../../../src/gateway/providers/clouds/event-frames.ts'
import { AnthropicStreamDecoder } from '../../../../src/gateway/providers/dialects/anthropic/anthropic-decoder.ts'
import { chunkFrame, exceptionFrame } from '../../../harness/cloud-server.ts'

const events = [
  {
    type: 'message_start',
    message: { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude', content: [], usage: { input_tokens: 9, output_tokens: 1 } },
  },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'नमस्ते "a\\b" 🌊' } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 6 } },
  { type: 'message_stop', 'amazon-bedrock-invocationMetrics': { inputTokenCount: 9, outputTokenCount: 6 } },
]
const bytes = Buffer.concat(events.map(chunkFrame))
const written = events.map(event => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')

/** Reads pieces, and returns everything that came out as text. */
function read(pieces: readonly Uint8Array[]): string {
  const frames = new EventFrames()
  return pieces.map(piece => Buffer.from(frames.push(piece) ?? []).toString('utf8')).join('')
}

test('case 3: the frames of a stream give the same events wherever their bytes are cut', () => {
  expect(read([bytes])).toBe(written)
  for (let at = 1; at < bytes.length; at++) expect(read([bytes.subarray(0, at), bytes.subarray(at)])).toBe(written)
  expect(read(Array.from(bytes, (_byte, at) => bytes.subarray(at, at + 1)))).toBe(written)
})

test('case 3: one flipped bit anywhere in a frame is one error event after the events before it, wherever the bytes are cut', () => {
  const [first = Buffer.alloc(0), second = Buffer.alloc(0)] = events.map(chunkFrame)
  const before = `event: message_start\ndata: ${JSON.stringify(events[0])}\n\n`
  for (let at = 0; at < second.length; at++) {
    const broken = Buffer.from(second)
    broken[at] = (broken[at] ?? 0) ^ (1 << (at % 8))
    const all = Buffer.concat([first, broken, bytes])
    const whole = read([all])
    expect(whole.startsWith(`${before}event: error\n`), `bit at ${at}: ${whole.slice(before.length)}`).toBe(true)
    expect(whole.slice(before.length)).toMatch(
      /^event: error\ndata: \{"type":"error","error":\{"type":"api_error","message":"The provider sent a frame with a wrong checksum\."\}\}\n\n$/,
    )
    if (at % 7 === 0) expect(read(Array.from(all, (_byte, index) => all.subarray(index, index + 1)))).toBe(whole)
  }
})

test('a frame above 16 MiB is refused by its length alone, and a frame below it is read in any number of pieces', () => {
  const long = chunkFrame({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'x'.repeat(300_000) } })
  const frames = new EventFrames()
  let out = ''
  let mostHeld = 0
  for (let at = 0; at < long.length; at += 1000) {
    out += Buffer.from(frames.push(long.subarray(at, at + 1000)) ?? []).toString('utf8')
    mostHeld = Math.max(mostHeld, frames.heldBytes)
  }
  expect(out).toContain('"text_delta"')
  expect(mostHeld).toBeLessThanOrEqual(long.length * 2)
  expect(frames.heldBytes).toBe(0)
  const prelude = Buffer.alloc(12)
  prelude.writeUInt32BE(16 * 1024 * 1024 + 1, 0)
  prelude.writeUInt32BE(10, 4)
  prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8)
  const refused = read([prelude])
  expect(refused).toContain('is too long: at most 16777216 bytes are read')
  expect(read(Array.from(prelude, (_byte, at) => prelude.subarray(at, at + 1)))).toBe(refused)
})

test('frames of another encoder are read, with the content in any JSON form', () => {
  const encoded = Buffer.from('{"index":0,\n "type":"content_block_stop"\r\n}').toString('base64')
  const frame = (json: string) =>
    encodeEventStreamFrame({ ':message-type': 'event', ':content-type': 'application/json', ':event-type': 'chunk' }, Buffer.from(json))
  const expected = 'event: content_block_stop\ndata: {"index":0,  "type":"content_block_stop"  }\n\n'
  expect(read([frame(`{"p":"abc","bytes":"${encoded}"}`), frame(`{"bytes":"${encoded.replaceAll('/', '\\/')}"}`)])).toBe(expected + expected)
  const unnamed = Buffer.from('{"index":1}').toString('base64')
  expect(read([frame(`{"bytes":"${unnamed}"}`)])).toBe('')
  expect(read([frame('{"other":1}'), frame(`{"bytes":"${encoded}"}`)])).toMatch(/^event: error\n.*cannot be read/s)
  expect(read([frame(`{"bytes":"${Buffer.from('no JSON').toString('base64')}"}`)])).toContain('cannot be read')
})

test('an exception ends the stream as an error of the messages format, and frames of other kinds mean nothing', () => {
  const initial = encodeEventStreamFrame({ ':message-type': 'event', ':event-type': 'initial-response' }, Buffer.from('{}'))
  const fault = encodeEventStreamFrame({ ':message-type': 'error', ':error-code': 'InternalError', ':error-message': 'It broke.' }, Buffer.alloc(0))
  expect(read([initial, exceptionFrame('throttlingException', 'Too many tokens.'), bytes])).toBe(
    'event: error\ndata: {"type":"error","error":{"type":"rate_limit_error","message":"Too many tokens."}}\n\n',
  )
  expect(read([exceptionFrame('modelStreamErrorException', 'Broken.')])).toContain('"type":"api_error","message":"Broken."')
  expect(read([fault])).toContain('"message":"It broke."')
})

test('the reader of Anthropic streams reads the events, and only a stream of that cloud is read as frames', () => {
  const decoder = new AnthropicStreamDecoder()
  const kinds = decoder.push(Buffer.from(read([bytes]))).map(({ kind }) => kind)
  expect(kinds).toEqual(['chunk', 'chunk', 'chunk', 'done'])
  const type = 'application/vnd.amazon.eventstream'
  expect(framesOf({ cloud: 'bedrock-invoke' }, type, false)).toBeInstanceOf(EventFrames)
  expect([framesOf({ cloud: 'vertex' }, type, false), framesOf({}, type, false), framesOf({ cloud: 'bedrock-invoke' }, 'application/json', false)]).toEqual([
    null,
    null,
    null,
  ])
})
