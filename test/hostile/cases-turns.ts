/** Requests and answers that are within every bound of size, and give one turn of the event loop as much work as they can. */
import { once } from 'node:events'
import { type HostileCase, isAnything, isRefused, json, mib, together } from './cases.ts'
import type { Field, Got } from './field.ts'
import type { Answer } from './hostile-peers.ts'

const boundary = 'XX'
const formHeaders = { 'content-type': `multipart/form-data; boundary=${boundary}` }
const textPart = (name: string, value: string): Buffer => Buffer.from(`--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`)
const sound = Buffer.concat([
  Buffer.from(`--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n\r\nRIFF0000WAVE`),
  Buffer.alloc(1000),
  Buffer.from('\r\n'),
])
const form = (...parts: readonly Buffer[]): Buffer => Buffer.concat([...parts, Buffer.from(`--${boundary}--\r\n`)])
const sendForm = (field: Field, path: string, body: Buffer): Promise<Got> => field.send({ path, headers: formHeaders, body })

/** A JSON object of 0.7 MiB, whose members have distinct names. */
const wide = `{${Array.from({ length: 49_500 }, (_, index) => `"member${index}":1`).join()}}`

const formCases: HostileCase[] = [
  {
    name: 'form: 63 fields "fallbacks" of 49,500 members each',
    isShort: true,
    expects: isRefused,
    async run(field) {
      const fields = form(...Array.from({ length: 63 }, () => textPart('fallbacks', wide)), sound)
      return [await sendForm(field, '/v1/images/edits', fields), await sendForm(field, '/v1/audio/transcriptions', fields)]
    },
  },
  {
    name: 'form: 61 text fields of 1 MiB with a recording',
    isShort: true,
    expects: got => got.status === 400 && got.text.includes('more than 32000 characters'),
    async run(field) {
      const long = 'a'.repeat(mib - 10)
      const fields = Array.from({ length: 61 }, (_, index) => textPart(`field${index}`, long))
      return [await sendForm(field, '/v1/audio/transcriptions', form(textPart('model', 'hear'), ...fields, sound))]
    },
  },
]

const schemaOf = (isStrict: boolean): string => {
  const own = Array.from({ length: 9900 }, (_, index) => `p${index}`)
  const others = Array.from({ length: 100_000 }, (_, index) => `q${index}`)
  const schema = { type: 'object', additionalProperties: false, properties: Object.fromEntries(own.map(name => [name, 1])), required: [...others, ...own] }
  const tools = [{ name: 'f', strict: isStrict, input_schema: schema }]
  return JSON.stringify({ model: 'honest-model', max_tokens: 5, messages: [{ role: 'user', content: 'a' }], tools })
}

const schemaCase: HostileCase = {
  name: 'body: a strict tool of 9,900 properties that requires 100,000 other names first',
  isShort: true,
  run: field => Promise.all([true, false].map(isStrict => field.send({ path: '/v1/messages', headers: json, body: schemaOf(isStrict) }))),
}

const event = (delta: object): string =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'theirs', choices: [{ index: 0, delta, finish_reason: null }] })}\n\n`

/** Writes `block` again and again for some seconds. */
function floodFor(ms: number, block: Buffer): Answer {
  return async (response, write) => {
    response.setHeader('content-type', 'text/event-stream')
    if (!(await write(event({ role: 'assistant', content: 'hello' })))) return
    const endMs = Date.now() + ms
    while (Date.now() < endMs) if (!(await write(block))) return
    response.destroy()
  }
}

/** Whole answers with reasoning, and with blocks of thinking that nearly occur in it. */
const thinking: readonly (readonly [name: string, message: () => object])[] = [
  [
    'reasoning of 131,072 equal characters, and a block of half of it with another one in the middle',
    () => ({ reasoning_content: 'a'.repeat(131_072), thinking_blocks: [block(`${'a'.repeat(32_768)}b${'a'.repeat(32_767)}`)] }),
  ],
  [
    'reasoning of 4 MB, and 5,000 blocks that do not occur in it',
    () => ({ reasoning_content: 'a'.repeat(4_000_000), thinking_blocks: Array.from({ length: 5000 }, () => block('zq')) }),
  ],
]

function block(text: string): object {
  return { type: 'thinking', thinking: text, signature: 's' }
}

const thinkingCases: HostileCase[] = thinking.map(([name, message], index) => ({
  name: `provider: ${name}`,
  isShort: true,
  async run(field) {
    field.provider.answers.set(`thinking-${index}`, async (response, write) => {
      response.setHeader('content-type', 'application/json')
      const choices = [{ index: 0, message: { role: 'assistant', content: 'x', ...message() }, finish_reason: 'stop' }]
      await write(
        JSON.stringify({ id: 'c', object: 'chat.completion', created: 1, model: 'theirs', choices, usage: { prompt_tokens: 1, completion_tokens: 1 } }),
      )
    })
    return [await field.send({ path: '/v1/messages', headers: json, body: field.callOf(`thinking-${index}`) })]
  },
}))

const floods: readonly (readonly [name: string, piece: Buffer])[] = [
  ['empty objects', Buffer.from('data: {}\n\n'.repeat(6500))],
  ['small deltas', Buffer.from('data: {"choices":[{"delta":{"content":"a","b":1}}]}\n\n'.repeat(1300))],
]

const floodCases: HostileCase[] = floods.map(([name, piece], index) => ({
  name: `provider: 20 streams of ${name} at full speed, on two formats`,
  isShort: true,
  expects: isAnything,
  async run(field) {
    field.provider.answers.set(`full-${index}`, floodFor(5000, piece))
    const body = field.callOf(`full-${index}`, { stream: true })
    const got: Got[] = []
    for (const path of ['/v1/chat/completions', '/v1/messages'])
      got.push(...(await together(20, () => field.send({ path, headers: json, body, timeoutMs: 9000 }))))
    return got
  },
}))

const hintCases: HostileCase[] = [
  {
    name: 'provider: 10 calls that are answered with informational replies without end',
    isShort: true,
    // The only route fails.
    expects: got => got.status === 502,
    run(field) {
      const hints = Buffer.from('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(4000))
      field.provider.answers.set('early', async ({ socket }) => {
        const endMs = Date.now() + 8000
        while (socket !== null && Date.now() < endMs && !socket.destroyed)
          if (!socket.write(hints)) await Promise.race([once(socket, 'drain'), once(socket, 'close')]).catch(() => undefined)
        socket?.destroy()
      })
      return together(10, () => field.send({ path: '/v1/chat/completions', headers: json, body: field.callOf('early'), timeoutMs: 12_000 }))
    },
  },
]

export const turnCases: readonly HostileCase[] = [...formCases, schemaCase, ...thinkingCases, ...floodCases, ...hintCases]
