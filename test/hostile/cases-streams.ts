/** Hostile answers of an organisation's own server. */
import { once } from 'node:events'
import { gzipSync } from 'node:zlib'
import { type HostileCase, isAnything, json, mib, repeated, together } from './cases.ts'
import type { Field, Got } from './field.ts'
import type { Answer } from './hostile-peers.ts'

/** The ways in which a provider's answer is read: one relay and two translations. */
const kinds = [
  { path: '/v1/chat/completions', of: (body: string) => body },
  { path: '/v1/messages', of: (body: string) => body },
  { path: '/v1/responses', of: (body: string) => body.replace('"messages":', '"input":').replace('"max_tokens":', '"max_output_tokens":') },
] as const

/** Calls every endpoint with a request for the answer `name`. */
async function askAll(field: Field, name: string, more: object, timeoutMs = 60_000): Promise<Got[]> {
  const got: Got[] = []
  for (const { path, of } of kinds) got.push(await field.send({ path, headers: json, body: of(field.callOf(name, more)), timeoutMs }))
  return got
}

const head = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'theirs' }
const event = (delta: object, finish: string | null = null, more: object = {}): string =>
  `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta, finish_reason: finish }], ...more })}\n\n`
const done = 'data: [DONE]\n\n'
const usage = { usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } }
const call = (index: number | undefined, args: string, name?: string): object => ({
  tool_calls: [
    {
      ...(index === undefined ? {} : { index }),
      ...(name === undefined ? {} : { id: `call_${index ?? 0}`, type: 'function' }),
      function: { ...(name === undefined ? {} : { name }), arguments: args },
    },
  ],
})

/** Makes a stream that writes `begin`, then `piece` until `bytes` are sent or the reader disconnects, then `end`. */
function flood(piece: string | Buffer, bytes: number, begin = '', end = done): Answer {
  return async (response, write) => {
    response.setHeader('content-type', 'text/event-stream')
    if (begin !== '' && !(await write(begin))) return
    const block = repeated(String(piece), Math.max(65_536, Buffer.byteLength(piece)))
    for (let size = 0; size < bytes; size += block.length) if (!(await write(block))) return
    await write(end)
  }
}

/** Makes a stream of these texts. */
const stream =
  (texts: () => Iterable<string>): Answer =>
  async (response, write) => {
    response.setHeader('content-type', 'text/event-stream')
    for (const text of texts()) if (!(await write(text))) return
  }

/** Makes a whole answer of these bytes. */
const whole =
  (make: () => Buffer | string, headers: Record<string, string> = json): Answer =>
  async (response, write) => {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
    await write(make())
  }

/** Joins pieces to blocks of about 64 KiB, as a fast provider sends them. */
function* blocks(count: number, make: (index: number) => string): Generator<string> {
  let block = ''
  for (let index = 0; index < count; index++) {
    block += make(index)
    if (block.length > 65_536) {
      yield block
      block = ''
    }
  }
  yield block
}

const reply = (message: object, more: object = usage): string =>
  JSON.stringify({ id: 'c', object: 'chat.completion', created: 1, model: 'theirs', choices: [{ index: 0, message, finish_reason: 'stop' }], ...more })
const wholeText = (content: string): string => reply({ role: 'assistant', content })

interface Row {
  readonly name: string
  readonly isShort: boolean
  readonly isStream: boolean
  readonly answer: Answer
  readonly expects?: (got: Got) => boolean
}

const rows: readonly Row[] = [
  { name: '200 MB of comments', isShort: false, isStream: true, answer: flood(': still thinking\n\n', 200 * mib) },
  {
    name: 'a gzip of 50,000,000 comments behind an event',
    isShort: true,
    isStream: true,
    answer: whole(() => gzipSync(Buffer.concat([Buffer.from(event({ content: 'a' })), repeated(':\n', 100 * mib)]), { level: 1 }), {
      'content-type': 'text/event-stream',
      'content-encoding': 'gzip',
    }),
  },
  { name: '112 MB of data lines without a blank line', isShort: true, isStream: true, answer: flood('data: a\n', 112 * mib) },
  { name: 'one line of 100 MB', isShort: true, isStream: true, answer: flood('a', 100 * mib, 'data: "') },
  { name: '100 MB of blank lines', isShort: false, isStream: true, answer: flood('\n', 100 * mib) },
  { name: '100 MB of "data:" without a value', isShort: false, isStream: true, answer: flood('data:\n', 100 * mib) },
  { name: '50 MB of lines of unknown fields', isShort: false, isStream: true, answer: flood('id: 1\nretry: 1\nx: y\n', 50 * mib) },
  {
    name: '1,000,000 deltas',
    isShort: false,
    isStream: true,
    answer: stream(function* () {
      yield* blocks(1_000_000, () => event({ content: 'a' }))
      yield event({}, 'stop', usage) + done
    }),
  },
  {
    name: '150,000 deltas',
    isShort: true,
    isStream: true,
    answer: stream(function* () {
      yield* blocks(150_000, () => event({ content: 'a' }))
      yield event({}, 'stop', usage) + done
    }),
  },
  {
    name: 'arguments of 5 MB followed by 2,000 pieces, without an index',
    isShort: true,
    isStream: true,
    answer: stream(function* () {
      yield event(call(undefined, `{"a":"${'x'.repeat(5 * mib)}`, 'f'))
      yield* blocks(2000, () => event(call(undefined, '}')))
      yield event({}, 'tool_calls', usage) + done
    }),
  },
  {
    name: 'arguments of a call in 200,000 pieces',
    isShort: false,
    isStream: true,
    answer: stream(function* () {
      yield event(call(0, '{"a":"', 'f'))
      yield* blocks(200_000, () => event(call(0, 'x')))
      yield event({}, 'tool_calls', usage) + done
    }),
  },
  {
    name: '20,000 calls of tools',
    isShort: true,
    isStream: true,
    answer: stream(function* () {
      yield* blocks(20_000, index => event(call(index, '{}', 'f')))
      yield event({}, 'tool_calls', usage) + done
    }),
  },
  {
    name: '24,000 choices with thinking in one event',
    isShort: true,
    isStream: true,
    answer: stream(() => [`data: {"choices":[${'{"delta":{"reasoning":"x"}},'.repeat(24_000)}{}]}\n\n`, done]),
  },
  {
    name: 'usage in an event of 99,000 objects',
    isShort: true,
    isStream: true,
    answer: stream(() => [event({ content: 'a' }, 'stop', { ...usage, z: Array(99_000).fill({}) }), done]),
  },
  {
    name: '20,000,000 control characters',
    isShort: true,
    isStream: true,
    answer: stream(function* () {
      for (let size = 0; size < 20_000_000; size += 10_000) yield event({ content: '\u0001'.repeat(10_000) })
      yield event({}, 'stop', usage) + done
    }),
  },
  {
    name: '20,000 calls in one event',
    isShort: false,
    isStream: true,
    answer: stream(() => [
      event({ tool_calls: Array.from({ length: 20_000 }, (_, index) => ({ index, id: `c${index}`, function: { name: 'f', arguments: '{}' } })) }),
      done,
    ]),
  },
  {
    name: 'an event with 900 KB of nested JSON',
    isShort: true,
    isStream: true,
    answer: stream(() => [`data: {"choices":[{"index":0,"delta":{"content":"a","x":${'['.repeat(450_000)}${']'.repeat(450_000)}}}]}\n\n`, done]),
  },
  {
    name: '200 events of 900 KB of small values',
    isShort: false,
    isStream: true,
    answer: stream(function* () {
      const one = `data: {"choices":[{"index":0,"delta":{"content":"a","x":[${'0,'.repeat(450_000)}0]}}]}\n\n`
      for (let count = 0; count < 200; count++) yield one
      yield done
    }),
  },
  {
    name: 'wrong usage',
    isShort: true,
    isStream: true,
    answer: stream(() => [
      event({ content: 'a' }, 'stop', { usage: { prompt_tokens: 1e308, completion_tokens: -5, total_tokens: 'many' } }),
      `data: {"choices":[],"usage":{"completion_tokens":99999999999999999999999999}}\n\n`,
      done,
    ]),
  },
  {
    name: 'an error in the middle, then more',
    isShort: true,
    isStream: true,
    answer: stream(() => [event({ content: 'a' }), 'data: {"error":{"message":"broken","code":500}}\n\n', event({ content: 'b' }, 'stop', usage), done]),
  },
  {
    name: 'data after the end mark',
    isShort: true,
    isStream: true,
    answer: stream(() => [event({ content: 'a' }, 'stop', usage) + done + event({ content: 'SMUGGLED' }) + done]),
    expects: got => isAnything(got) && !got.text.includes('SMUGGLED'),
  },
  {
    name: 'comments first, then an error',
    isShort: true,
    isStream: true,
    answer: stream(() => [': OPENROUTER PROCESSING\n\n', ': OPENROUTER PROCESSING\n\n', 'data: {"error":{"message":"broken","code":500}}\n\n']),
    expects: got => got.status >= 400 && got.status !== 500,
  },
  {
    name: 'invalid UTF-8, CR line ends, a BOM',
    isShort: true,
    isStream: true,
    answer: whole(
      () =>
        Buffer.concat([
          Buffer.from([0xef, 0xbb, 0xbf]),
          Buffer.from(event({ content: 'a' }).replaceAll('\n', '\r')),
          Buffer.from([0x64, 0x61, 0x74, 0x61, 0x3a, 0xff, 0xfe, 0x0a, 0x0a]),
        ]),
      { 'content-type': 'text/event-stream' },
    ),
  },
  {
    name: 'a whole answer with 8 MiB of nested JSON',
    isShort: true,
    isStream: false,
    answer: whole(() => `{"choices":${'['.repeat(4 * mib)}${']'.repeat(4 * mib)}}`),
  },
  { name: 'a whole answer of 30 MB of small objects', isShort: false, isStream: false, answer: whole(() => `{"choices":[${'{},'.repeat(10 * mib)}{}]}`) },
  {
    name: 'a whole answer of 4,000,000 numbers',
    isShort: true,
    isStream: false,
    answer: whole(() => `${wholeText('a').slice(0, -1)},"x":[${repeated('0,', 7.9 * mib)}0]}`),
    expects: got => got.status === 502 && got.text.includes('too many values'),
  },
  {
    name: 'a whole answer of 8 MiB of texts in lists',
    isShort: false,
    isStream: false,
    answer: whole(() => `${wholeText('a').slice(0, -1)},"x":[${repeated('"a",', 7.9 * mib)}0]}`),
    expects: got => got.status === 502 && got.text.includes('too many values'),
  },
  {
    name: 'a whole answer of 240,000 long numbers',
    isShort: true,
    isStream: false,
    answer: whole(() => `${wholeText('a').slice(0, -1)},"x":[${repeated('0.12345678901234567,', 240_000 * 20)}0]}`),
  },
  { name: 'a whole answer of 30 MB of text', isShort: true, isStream: false, answer: whole(() => wholeText('a'.repeat(30 * mib))) },
  {
    name: 'a whole answer of 200 MB',
    isShort: false,
    isStream: false,
    answer: async (response, write) => flood('a', 200 * mib, '{"choices":"')(response, write, ''),
  },
  {
    name: 'a whole answer with 20,000 calls',
    isShort: false,
    isStream: false,
    answer: whole(() =>
      reply({
        role: 'assistant',
        content: null,
        tool_calls: Array.from({ length: 20_000 }, (_, index) => ({ id: `c${index}`, type: 'function', function: { name: 'f', arguments: '{}' } })),
      }),
    ),
  },
  {
    name: 'a compressed answer of 1 MB that decodes to 1 GB',
    isShort: false,
    isStream: false,
    answer: whole(() => gzipSync(Buffer.alloc(512 * mib, 32)), { ...json, 'content-encoding': 'gzip' }),
  },
  {
    name: 'an error of 30 MB',
    isShort: false,
    isStream: false,
    answer: async (response, write) => {
      response.statusCode = 400
      response.setHeader('content-type', 'application/json')
      await write(`{"error":{"message":"${'a'.repeat(30 * mib)}"}}`)
    },
  },
  {
    name: 'an error of 2,000 spaces, and one of 1,000 words of punctuation',
    isShort: true,
    isStream: false,
    answer: async (response, write) => {
      response.statusCode = 500
      response.setHeader('content-type', 'application/json')
      await write(JSON.stringify({ error: { message: `${' '.repeat(2000)}x${' .'.repeat(1000)}` } }))
    },
  },
  {
    name: 'an error with 4 MB of nested JSON',
    isShort: true,
    isStream: false,
    answer: async (response, write) => {
      response.statusCode = 400
      response.setHeader('content-type', 'application/json')
      await write(`{"error":${'['.repeat(2 * mib)}${']'.repeat(2 * mib)}}`)
    },
  },
]

const rowCases: HostileCase[] = rows.map(({ name, isShort, isStream, answer, expects = isAnything }, index) => ({
  name: `provider: ${name}`,
  isShort,
  expects,
  run(field) {
    field.provider.answers.set(`row-${index}`, answer)
    return askAll(field, `row-${index}`, { stream: isStream })
  },
}))

const loadCases: HostileCase[] = [
  {
    name: 'provider: 30 streams that do not begin, with short events between long comments',
    isShort: true,
    expects: isAnything,
    run(field) {
      const comments = `: ${'a'.repeat(3900)}\n: ${'b'.repeat(3900)}\n\n`
      field.provider.answers.set('unbegun', flood(`data:{}\n\n${comments}`, 60 * mib))
      return together(30, () => field.send({ path: '/v1/chat/completions', headers: json, body: field.callOf('unbegun', { stream: true }), timeoutMs: 20_000 }))
    },
  },
  {
    name: 'provider: 250 translated streams of 3.5 MB of arguments, which stay open',
    isShort: true,
    expects: isAnything,
    run(field) {
      field.provider.answers.set('open-calls', async (response, write) => {
        response.setHeader('content-type', 'text/event-stream')
        if (!(await write(event(call(0, '{"a":"', 'f'))))) return
        for (let count = 0; count < 5; count++) if (!(await write(event(call(0, 'a'.repeat(700_000)))))) return
        await once(response, 'close').catch(() => undefined)
      })
      return together(250, () =>
        field.send({ path: '/v1/messages', headers: json, body: field.callOf('open-calls', { stream: true, max_tokens: 100 }), timeoutMs: 20_000 }),
      )
    },
  },
  {
    name: 'provider: 10 streams in chunks of one byte',
    isShort: true,
    expects: isAnything,
    run(field) {
      field.provider.answers.set('one-byte', async response => {
        const { socket } = response
        if (socket === null) return
        socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n')
        const block = Buffer.from('1\r\n:\r\n'.repeat(40_000))
        const endMs = Date.now() + 10_000
        while (Date.now() < endMs && !socket.destroyed)
          if (!socket.write(block)) await Promise.race([once(socket, 'drain'), once(socket, 'close')]).catch(() => undefined)
        socket.destroy()
      })
      return together(10, () =>
        field.send({ path: '/v1/chat/completions', headers: json, body: field.callOf('one-byte', { stream: true }), timeoutMs: 20_000 }),
      )
    },
  },
  {
    name: 'provider: 10 streams of one endless event at the same time',
    isShort: true,
    expects: isAnything,
    run(field) {
      field.provider.answers.set('endless', flood('data: a\n', 60 * mib))
      return together(10, index => {
        const { path, of } = kinds[index % kinds.length] ?? kinds[0]
        return field.send({ path, headers: json, body: of(field.callOf('endless', { stream: true })) })
      })
    },
  },
  {
    name: 'provider: 50 streams whose callers leave after the first bytes',
    isShort: true,
    expects: isAnything,
    run(field) {
      field.provider.answers.set('long', flood(event({ content: 'a'.repeat(200) }), 20 * mib))
      return together(50, () =>
        field.send({ path: '/v1/chat/completions', headers: json, body: field.callOf('long', { stream: true }), leaveAfterBytes: 1000, timeoutMs: 20_000 }),
      )
    },
  },
  {
    name: 'provider: streams that are read slowly, and streams that arrive byte by byte',
    isShort: false,
    expects: isAnything,
    run(field) {
      field.provider.answers.set('by-the-byte', async (response, write) => {
        response.setHeader('content-type', 'text/event-stream')
        for (const byte of event({ content: 'a' }).repeat(3)) {
          if (!(await write(byte))) return
          await new Promise(go => setTimeout(go, 20))
        }
        await write(done)
      })
      return together(30, index => {
        const { path, of } = kinds[index % kinds.length] ?? kinds[0]
        return field.send({ path, headers: json, body: of(field.callOf('by-the-byte', { stream: true })), timeoutMs: 40_000 })
      })
    },
  },
]

/** Endless answers to the MCP tool `chat`, which keeps what it reads. */
const toolAnswers: readonly (readonly [name: string, answer: Answer, expects: (got: Got) => boolean])[] = [
  ['one line', flood('a'.repeat(1000), 1024 * mib, 'data: {"choices":[{"delta":{"content":"'), isTooLong],
  ['data lines', flood('data: a\n', 1024 * mib, event({ content: 'a' })), isTooLong],
  ['data lines that end in CR', flood('data: a\r', 1024 * mib, event({ content: 'a' })), isTooLong],
  ['text', flood(event({ content: 'a'.repeat(200) }), 1024 * mib), () => true],
  ['text that is sent character by character', flood(event({ content: 'a' }), 1024 * mib), () => true],
  ['reasoning', flood(event({ reasoning_content: 'a'.repeat(200) }), 1024 * mib), () => true],
]

function isTooLong({ text }: Got): boolean {
  return text.includes('too long')
}

const toolCases: HostileCase[] = toolAnswers.map(([name, answer, expects], index) => ({
  name: `provider: the tool chat and ${name} without end, 4 at the same time`,
  isShort: true,
  expects: got => got.status === 200 && expects(got),
  run(field) {
    field.provider.answers.set(`tool-${index}`, answer)
    const args = { model: 'honest-model', provider: 'byoe:evil', prompt: `case:tool-${index}` }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'chat', arguments: args } })
    const headers = { ...json, accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-06-18' }
    return together(4, () => field.send({ path: '/mcp', headers, body }))
  },
}))

export const streamCases: readonly HostileCase[] = [...rowCases, ...loadCases, ...toolCases]
