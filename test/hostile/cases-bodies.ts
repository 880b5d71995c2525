/** Hostile request bodies: structures, sizes, invalid bytes, slow uploads, and many at the same time. */
import { gzipSync } from 'node:zlib'
import { type HostileCase, isAnswered, isAnything, isRefused, json, mib, repeated, together } from './cases.ts'
import type { Field, Got } from './field.ts'

const chatPath = '/v1/chat/completions'
const paths = [chatPath, '/v1/responses', '/v1/messages', '/v1/embeddings', '/mcp'] as const
const start = '{"model":"honest-model","max_tokens":5,"messages":[{"role":"user","content":"a"}],"input":"a","x":'

/** Makes a body with these bytes in an unknown field. */
const around = (middle: Buffer): Buffer => Buffer.concat([Buffer.from(start), middle, Buffer.from('}')])
const post = (field: Field, path: string, body: Buffer, headers: Record<string, string> = {}): Promise<Got> =>
  field.send({ path, body, headers: { ...json, accept: 'application/json, text/event-stream', ...headers } })

function nested(open: string, close: string, depth: number, core = ''): Buffer {
  return Buffer.concat([repeated(open, open.length * depth), Buffer.from(core), repeated(close, close.length * depth)])
}

function keys(bytes: number): Buffer {
  const parts: string[] = []
  for (let size = 0, index = 0; size < bytes; index++) {
    const part = `"k${index}":1`
    parts.push(part)
    size += part.length + 1
  }
  return Buffer.from(`{${parts.join(',')}}`)
}

const list = (item: string, bytes: number): Buffer => Buffer.concat([Buffer.from('['), repeated(`${item},`, bytes), Buffer.from(`${item}]`)])

/** JSON structures of 30 MB in an unknown field, for every endpoint. */
const shapes: readonly (readonly [name: string, isShort: boolean, make: () => Buffer, expects?: (got: Got) => boolean])[] = [
  ['30 MB of [[[ ]]]', true, () => nested('[', ']', 15 * mib), isRefused],
  ['30 MB of {"a":{"a": }}', false, () => nested('{"a":', '}', 5 * mib, '1'), isRefused],
  ['nesting of 100,000', true, () => nested('[', ']', 100_000), isRefused],
  ['30 MB of [{},{},…]', true, () => list('{}', 30 * mib), isRefused],
  ['30 MB of [0,0,…]', false, () => list('0', 30 * mib), isRefused],
  ['30 MB of [[],[],…]', false, () => list('[]', 30 * mib), isRefused],
  ['18 MB of keys', true, () => keys(18 * mib), isRefused],
  ['30 MB of one key, again and again', false, () => Buffer.from(`{${'"k":1,'.repeat(4.5 * mib)}"k":1}`), isRefused],
  ['one string of 30 MB', true, () => Buffer.concat([Buffer.from('"'), repeated('a', 30 * mib), Buffer.from('"')])],
  ['one string of 5,000,000 escapes', false, () => Buffer.concat([Buffer.from('"'), repeated('\\u0001', 30 * mib), Buffer.from('"')])],
  ['one string of 5,000,000 unpaired surrogates', true, () => Buffer.concat([Buffer.from('"'), repeated('\\ud800', 30 * mib), Buffer.from('"')]), isRefused],
  ['one number of 30 MB', false, () => repeated('7', 30 * mib)],
  ['30 MB of numbers with exponents', true, () => Buffer.concat([Buffer.from('['), repeated('1e1 ', 30 * mib), Buffer.from(']')]), isRefused],
  [
    '30 MB of long numbers without commas',
    false,
    () => Buffer.concat([Buffer.from('['), repeated('0.1234567890123456 ', 30 * mib), Buffer.from(']')]),
    isRefused,
  ],
  ['30 MB of blanks', false, () => Buffer.concat([repeated(' ', 30 * mib), Buffer.from('1')])],
  ['a string without an end', false, () => Buffer.concat([Buffer.from('"'), repeated('\\\\', 30 * mib)]), isRefused],
]

const shapeCases: HostileCase[] = shapes.map(([name, isShort, make, expects = isAnswered]) => ({
  name: `body: ${name}`,
  isShort,
  expects,
  async run(field) {
    const body = around(make())
    const got: Got[] = []
    for (const path of paths) got.push(await post(field, path, body))
    return got
  },
}))

const message = '{"role":"user","content":"a"}'
const countCases: HostileCase[] = [
  {
    name: 'body: 600,000 tiny messages',
    isShort: true,
    expects: isRefused,
    run: field =>
      Promise.all([
        post(field, '/v1/messages', Buffer.from(`{"model":"honest-model","max_tokens":5,"messages":[${`${message},`.repeat(600_000)}${message}]}`)),
        post(field, '/v1/responses', Buffer.from(`{"model":"honest-model","input":[${`${message},`.repeat(600_000)}${message}]}`)),
      ]),
  },
  {
    name: 'body: 200,000 tools, parts, stops, inputs',
    isShort: false,
    expects: isRefused,
    async run(field) {
      const many = (item: string, count = 200_000): string => `[${`${item},`.repeat(count)}${item}]`
      const chat = (more: string): Buffer => Buffer.from(`{"model":"honest-model","messages":[${message}],${more}}`)
      return [
        await post(field, chatPath, chat(`"tools":${many('{"type":"function","function":{"name":"f","parameters":{}}}')}`)),
        await post(field, chatPath, Buffer.from(`{"model":"honest-model","messages":[{"role":"user","content":${many('{"type":"text","text":"a"}')}}]}`)),
        await post(field, chatPath, chat(`"stop":${many('"a"')}`)),
        await post(field, '/v1/embeddings', Buffer.from(`{"model":"honest-embed","input":${many('"a"', 1_000_000)}}`)),
      ]
    },
  },
  {
    name: 'body: 15 objects of 9,900 members and tools of 140,000 values, on every format',
    isShort: true,
    async run(field) {
      const objects = Array.from({ length: 15 }, (_, index) => `{${Array.from({ length: 9900 }, (_, n) => `"k${index}_${n}":1`).join()}}`)
      const properties = Array.from({ length: 9000 }, (_, n) => `"p${n}":{"type":"string","description":"a"}`).join()
      const schema = `{"type":"object","properties":{${properties}}}`
      const wide = Buffer.from(`[${objects.join()}]`)
      const got: Got[] = []
      for (const path of paths.slice(0, 4)) got.push(await post(field, path, around(wide)))
      const chat = `"model":"honest-model","max_tokens":5,"messages":[${message}]`
      const tools = [
        [chatPath, `{${chat},"tools":[{"type":"function","function":{"name":"f","parameters":${schema}}}]}`],
        ['/v1/messages', `{${chat},"tools":[{"name":"f","input_schema":${schema}}]}`],
        ['/v1/responses', `{"model":"honest-model","input":"a","tools":[{"type":"function","name":"f","parameters":${schema}}]}`],
      ] as const
      for (const [path, body] of tools) got.push(await post(field, path, Buffer.from(body)))
      return got
    },
  },
  {
    name: 'body: 28 MB of pictures, 28 MB of text and 20,000 messages, three at a time',
    isShort: true,
    async run(field) {
      const picture = `{"type":"image_url","image_url":{"url":"data:image/png;base64,${'A'.repeat(7 * mib)}"}}`
      const text = `{"role":"user","content":"${'The quick brown fox.\\n'.repeat(60_000)}"}`
      const bodies = [
        `[{"role":"user","content":[${Array(4).fill(picture).join()}]}]`,
        `[${Array(20).fill(text).join()}]`,
        `[${Array(20_000).fill(message).join()}]`,
      ].map(messages => Buffer.from(`{"model":"honest-model","max_tokens":5,"messages":${messages}}`))
      const got: Got[] = []
      for (const path of [chatPath, '/v1/messages']) for (const body of bodies) got.push(...(await together(3, () => post(field, path, body))))
      return got
    },
  },
  {
    name: 'body: three of the most expensive bodies at the same time',
    isShort: true,
    expects: isRefused,
    async run(field) {
      const body = around(nested('[', ']', 15 * mib))
      return together(3, () => post(field, chatPath, body))
    },
  },
]

/** Bytes that are not UTF-8 JSON, or have another content-type. */
const byteCases: HostileCase[] = [
  {
    name: 'body: invalid UTF-8, surrogates, NUL, cut short',
    isShort: true,
    expects: got => got.status === 400,
    async run(field) {
      const [before, after] = ['{"model":"honest-model","messages":[{"role":"user","content":"', '"}]}']
      const wrong = [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xe2, 0x82], [0x00]]
      const bodies = [...wrong.map(bytes => Buffer.concat([Buffer.from(before), Buffer.from(bytes), Buffer.from(after)])), Buffer.from(before), Buffer.from('')]
      return Promise.all(bodies.map(body => post(field, chatPath, body)))
    },
  },
  {
    name: 'body: a byte order mark at the beginning is accepted',
    isShort: true,
    expects: got => got.status === 200,
    run: async field => [await post(field, chatPath, Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(field.callOf('none'))]))],
  },
  {
    name: 'body: gzip, also one that unpacks to 1 GiB',
    isShort: true,
    expects: got => got.status === 415,
    async run(field) {
      const bomb = gzipSync(Buffer.alloc(256 * mib, 32))
      return Promise.all([
        post(field, chatPath, gzipSync(field.callOf('none')), { 'content-encoding': 'gzip' }),
        post(field, chatPath, bomb, { 'content-encoding': 'gzip' }),
        post(field, '/v1/messages', bomb, { 'content-encoding': 'br' }),
      ])
    },
  },
  {
    name: 'body: duplicate fields that routing and charging read',
    isShort: true,
    expects: isAnswered,
    run: field =>
      Promise.all(
        [
          '"model":"a","model":"honest-model"',
          '"max_tokens":1,"max_tokens":1000000',
          '"web_search_options":{},"web_search_options":null',
          '"__proto__":{"model":"x"}',
        ].map(more => post(field, chatPath, Buffer.from(`{"model":"honest-model",${more},"messages":[${message}]}`))),
      ),
  },
]

/** The head announces 31 MiB, and the bytes arrive slowly or never. */
async function* slowly(pieceBytes: number, everyMs: number, totalMs: number): AsyncGenerator<Buffer> {
  yield Buffer.from(start)
  for (let atMs = 0; atMs < totalMs; atMs += everyMs) {
    await new Promise(done => setTimeout(done, everyMs))
    yield Buffer.alloc(pieceBytes, 32)
  }
}

async function* thirtyMib(pauseMs: number): AsyncGenerator<Buffer> {
  yield Buffer.from(start)
  yield Buffer.from('"')
  const piece = Buffer.alloc(mib, 97)
  for (let count = 0; count < 29; count++) {
    yield piece
    await new Promise(done => setTimeout(done, pauseMs))
  }
  yield Buffer.from('"}')
}

const loadCases: HostileCase[] = [
  {
    name: 'load: 300 bodies of 72,000 empty objects for a server that never answers',
    isShort: true,
    expects: isAnything,
    run(field) {
      field.provider.answers.set('silent', () => new Promise(() => undefined))
      const call = field.callOf('silent')
      const body = Buffer.from(`${call.slice(0, -1)},"x":[${'{},'.repeat(71_999)}{}]}`)
      return together(300, () => field.send({ path: chatPath, headers: json, body, timeoutMs: 15_000 }))
    },
  },
  {
    name: 'load: 40 bodies of 30 MiB at the same time',
    isShort: true,
    // When a body is refused before its end, the connection may break.
    expects: isAnything,
    run: field => together(40, () => field.send({ path: chatPath, headers: json, body: thirtyMib(50) })),
  },
  {
    name: 'load: 100 bodies that arrive byte by byte',
    isShort: false,
    expects: isAnything,
    run: field => together(100, () => field.send({ path: chatPath, headers: json, body: slowly(1, 100, 15_000), timeoutMs: 20_000 })),
  },
  {
    name: 'load: 20 bodies of 33 MiB get their 413',
    isShort: true,
    expects: got => got.status === 413 || got.status === 503,
    async run(field) {
      const body = around(Buffer.concat([Buffer.from('"'), repeated('a', 33 * mib), Buffer.from('"')]))
      const got: Got[] = []
      for (let round = 0; round < 5; round++) got.push(...(await together(4, () => post(field, chatPath, body))))
      return got
    },
  },
  {
    name: 'load: 20,000 small calls over 50 connections, half of them not JSON',
    isShort: false,
    run: async field => {
      const got: Got[] = []
      await together(50, async index => {
        for (let count = 0; count < 400; count++)
          got.push(await field.send({ path: chatPath, headers: json, body: index % 2 === 0 ? '{' : field.callOf('none') }))
      })
      return got
    },
  },
]

const oneByteChunks = Buffer.from('1\r\na\r\n'.repeat(200_000))

/** 2,000,000 chunks of one byte. */
function* oneByByte(): Generator<Buffer> {
  for (let count = 0; count < 10; count++) yield oneByteChunks
}

/** 300,000 chunks of 40 bytes, which are within the bounds. */
function* fortyByForty(): Generator<Buffer> {
  const piece = Buffer.from(`28\r\n${' '.repeat(40)}\r\n`.repeat(30_000))
  for (let count = 0; count < 10; count++) yield piece
  yield Buffer.from('0\r\n\r\n')
}

/** Chunks that cause far more work than their bytes. The connection ends while the sender writes, so the answer may be lost. */
const pieceCases: HostileCase[] = [
  {
    name: 'pieces: 2,000,000 chunks of one byte without a credential, on every kind of endpoint',
    isShort: true,
    expects: isAnything,
    run: async field => {
      const got: Got[] = []
      for (const path of [...paths, '/v1/me/agents', '/oauth/token', '/nowhere'])
        got.push(await field.send({ path, headers: json, token: null, framed: oneByByte() }))
      got.push(await field.send({ method: 'GET', path: '/health', token: null, framed: oneByByte() }))
      return got
    },
  },
  {
    name: 'pieces: 2,000,000 chunks of one byte on endpoints that read bodies, three at a time',
    isShort: true,
    expects: isAnything,
    run: async field => {
      const got: Got[] = []
      for (const path of paths)
        got.push(...(await together(3, () => field.send({ path, headers: { ...json, accept: 'application/json, text/event-stream' }, framed: oneByByte() }))))
      const form = { 'content-type': 'multipart/form-data; boundary=XX' }
      got.push(...(await together(3, () => field.send({ path: '/v1/audio/transcriptions', headers: form, framed: oneByByte() }))))
      got.push(...(await together(3, () => field.send({ method: 'GET', path: '/v1/models', framed: oneByByte() }))))
      return got
    },
  },
  {
    name: 'pieces: 300,000 chunks of 40 bytes, in JSON and in a form',
    isShort: false,
    expects: isAnything,
    async run(field) {
      const form = { 'content-type': 'multipart/form-data; boundary=XX' }
      return [
        await field.send({ path: chatPath, headers: json, framed: fortyByForty() }),
        await field.send({ path: '/v1/audio/transcriptions', headers: form, framed: fortyByForty() }),
      ]
    },
  },
]

const batch = (method: string, params: object, count: number): string =>
  JSON.stringify(Array.from({ length: count }, (_, id) => ({ jsonrpc: '2.0', id, method, params })))

const pageCases: HostileCase[] = [
  {
    name: 'mcp: 20 batches of 100 lists',
    isShort: true,
    run: field =>
      together(20, index =>
        field.send({
          path: '/mcp',
          headers: { ...json, accept: 'application/json, text/event-stream' },
          body: batch(index % 2 === 0 ? 'tools/list' : 'resources/list', {}, 100),
        }),
      ),
  },
  {
    name: 'mcp: 49,000 members, in a message, params, _meta and arguments, and 49,000 values',
    isShort: true,
    expects: got => got.status === 400 && got.text.includes('-32600') && got.text.length < 500,
    run(field) {
      const names = keys(49_000 * 11).toString()
      const frame = (params: string, more = ''): Buffer => Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"tools/call",${more}"params":${params}}`)
      const bodies = [
        frame('{}', names.slice(1, -1).concat(',')),
        frame(names),
        frame(`{"name":"whoami","_meta":${names}}`),
        frame(`{"name":"whoami","arguments":${names}}`),
        frame(`{"name":"whoami","x":${list('0', 49_000 * 2)}}`),
        frame(`{"name":"whoami","x":${list('{}', 24_000 * 3)}}`),
      ]
      return Promise.all(bodies.map(body => post(field, '/mcp', body, { 'mcp-protocol-version': '2025-06-18' })))
    },
  },
  {
    name: 'mcp: addresses, names and arguments of a megabyte, in halves of surrogates, escapes and combining marks',
    isShort: true,
    async run(field) {
      const frame = (method: string, params: string): Buffer => Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`)
      const texts = ['\\ud800'.repeat(170_000), '%zz'.repeat(340_000), `a${'\u0301\u0323'.repeat(250_000)}`]
      const got: Got[] = []
      for (const text of texts) {
        const bodies = [
          frame('resources/read', `{"uri":"memory://${text}"}`),
          frame('tools/call', `{"name":"${text}"}`),
          frame('tools/call', `{"name":"whoami","arguments":{"${text}":1}}`),
          frame('tools/call', `{"name":"memory_list","arguments":{"prefix":"${text}"}}`),
        ]
        for (const body of bodies) got.push(await post(field, '/mcp', body, { 'mcp-protocol-version': '2025-06-18' }))
        got.push(await post(field, '/v1/me/agents', Buffer.from(`{"name":"${text}"}`)))
      }
      return got
    },
  },
  {
    name: 'mcp: arguments of 30 MB, nested and long',
    isShort: false,
    expects: isAnything,
    async run(field) {
      const frame = (args: Buffer): Buffer =>
        Buffer.concat([
          Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_list","arguments":{"prefix":'),
          args,
          Buffer.from('}}}'),
        ])
      return [
        await post(field, '/mcp', frame(nested('[', ']', 15 * mib))),
        await post(field, '/mcp', frame(Buffer.concat([Buffer.from('"'), repeated('a', 30 * mib), Buffer.from('"')]))),
      ]
    },
  },
  {
    name: 'pages: 400 requests for the public OpenAPI document over 20 connections, without a credential',
    isShort: true,
    run: async field => {
      const got: Got[] = []
      await together(20, async () => {
        for (let count = 0; count < 20; count++) got.push(await field.send({ method: 'GET', path: '/openapi.json', token: null }))
      })
      return got
    },
  },
  {
    name: 'management: deep and wide bodies on endpoints of the organisation',
    isShort: true,
    expects: isRefused,
    async run(field) {
      const deep = nested('[', ']', 400_000)
      const got: Got[] = []
      for (const [method, path] of [
        ['PUT', '/v1/me/memory-store'],
        ['POST', '/v1/me/agents'],
        ['POST', '/v1/me/keys'],
        ['POST', '/oauth/token'],
      ] as const)
        for (const body of [deep, list('{}', mib - 100), keys(mib - 10_000)]) got.push(await field.send({ method, path, headers: json, body }))
      return got
    },
  },
]

export const bodyCases: readonly HostileCase[] = [...shapeCases, ...countCases, ...byteCases, ...loadCases, ...pieceCases, ...pageCases]
