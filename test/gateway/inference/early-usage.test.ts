/** Usage that a stream reports early does not cover its later output, and the name of a more expensive model may come late. */
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { ChatRelayAdapter } from '../../../src/gateway/inference/stream/chat-relay-adapter.ts'
import { chatFormat } from '../../../src/gateway/wire/chat/chat-format.ts'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'
import type { UpstreamServer } from '../../harness/upstream-server.ts'
import { usageRows } from '../../harness/usage-rows.ts'

const event = (data: object, name?: string) => `${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`
const text = 'abc'.repeat(300)
const usageOf = (completion: number) => ({ prompt_tokens: 10, completion_tokens: completion, total_tokens: 10 + completion })

/** A stream in a provider's format. It reports 50 tokens, then sends 300, and reports nothing more. */
interface Spoken {
  /** Returns the text after a usage that is reported before it. */
  early(model: string): string[]
  readonly end: string
  /** Returns the text and the end, with correct usage. */
  honest(model: string): string[]
}

const chatChunk = (model: string, delta: object, more: object = {}) => event({ id: 'c', model, choices: [{ index: 0, delta, finish_reason: null }], ...more })
const chat: Spoken = {
  early: model => [chatChunk(model, { content: '' }, { usage: usageOf(50) }), chatChunk(model, { content: text })],
  end: 'data: [DONE]\n\n',
  honest: model => [
    chatChunk(model, { content: text }),
    event({ id: 'c', model, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
    event({ id: 'c', model, choices: [], usage: usageOf(300) }),
    'data: [DONE]\n\n',
  ],
}
const usageFirst: Spoken = { ...chat, early: model => [event({ id: 'c', model, choices: [], usage: usageOf(50) }), chatChunk(model, { content: text })] }
const said = event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }, 'content_block_delta')
const started = (model: string, output: number) =>
  event(
    { type: 'message_start', message: { id: 'm', type: 'message', role: 'assistant', model, content: [], usage: { input_tokens: 10, output_tokens: output } } },
    'message_start',
  )
const opened = event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }, 'content_block_start')
const stopped = event({ type: 'message_stop' }, 'message_stop')
const messages: Spoken = {
  early: model => [started(model, 50), opened, said],
  end: stopped,
  honest: model => [
    started(model, 1),
    opened,
    said,
    event({ type: 'content_block_stop', index: 0 }, 'content_block_stop'),
    event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 300 } }, 'message_delta'),
    stopped,
  ],
}
const runningDelta: Spoken = {
  ...messages,
  early: model => [started(model, 1), opened, event({ type: 'message_delta', delta: {}, usage: { output_tokens: 50 } }, 'message_delta'), said],
}
const responses: Pick<Spoken, 'honest'> = {
  honest: model => {
    const response = {
      id: 'r',
      object: 'response',
      created_at: 1,
      model,
      status: 'completed',
      output: [],
      usage: { input_tokens: 10, output_tokens: 300, total_tokens: 310 },
    }
    return [
      event({ type: 'response.created', response: { ...response, status: 'in_progress', usage: null } }, 'response.created'),
      event({ type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: text }, 'response.output_text.delta'),
      event({ type: 'response.completed', response }, 'response.completed'),
    ]
  },
}

const paths: Readonly<Record<string, object>> = {
  '/v1/chat/completions': { messages: [{ role: 'user', content: 'hello' }] },
  '/v1/messages': { max_tokens: 1000, messages: [{ role: 'user', content: 'hello' }] },
  '/v1/responses': { input: 'hello' },
}

describe('usage that is reported early, and models that are named late', () => {
  let app: TestApp
  let servers: Readonly<Record<string, UpstreamServer>>
  beforeAll(async () => {
    app = await startApp({
      dialects: true,
      env: { CIRCUIT_FAILURES: '1000' },
      operatorFile: urls => {
        const dear = (provider: string) => ({
          id: `dear-${provider}`,
          kind: 'chat',
          context_length: 200_000,
          routes: [{ provider, upstream_model: 'dear-up', input_inr_per_mtok: 1000, output_inr_per_mtok: 10_000, source: 'test', as_of: '2026-01-01' }],
        })
        const plain = (provider: string) => ({
          ...dear(provider),
          id: `plain-${provider}`,
          routes: [{ provider, upstream_model: 'plain-up', input_inr_per_mtok: 0, output_inr_per_mtok: 1000, source: 'test', as_of: '2026-01-01' }],
        })
        const file = defaultOperatorFile(urls)
        return { ...file, models: [...file.models, ...['alpha', 'claude', 'resp'].flatMap(provider => [plain(provider), dear(provider)])] }
      },
    })
    servers = { alpha: app.alpha, claude: app.others.claude, resp: app.others.resp }
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    for (const server of Object.values(servers)) server.reset()
  })
  const call = (path: string, provider: string) => app.call('POST', path, { ...paths[path], model: `plain-${provider}`, stream: true })

  for (const path of Object.keys(paths))
    for (const [name, provider, spoken] of [
      ['usage in the first chunk', 'alpha', chat],
      ['usage in a separate first chunk', 'alpha', usageFirst],
      ['output tokens in the first event of a message', 'claude', messages],
      ['usage in every event of a message', 'claude', runningDelta],
    ] as const)
      test(`HARD-16 ${path}: ${name} is charged with all later output, when the stream ends and when it breaks off`, async () => {
        for (const isBroken of [true, false]) {
          const parts = spoken.early('plain-up')
          servers[provider]?.script([{ rawStream: isBroken ? parts : [...parts, spoken.end], breakAfterRaw: isBroken }])
          await call(path, provider)
          expect((await usageRows(app))[0], isBroken ? 'broken' : 'ended').toMatchObject({ completionTokens: 350n, estimated: true })
        }
      })

  for (const path of Object.keys(paths))
    for (const [provider, spoken] of [
      ['alpha', chat],
      ['claude', messages],
      ['resp', responses],
    ] as const)
      test(`a more expensive model that ${provider} names in a later part of the stream is charged: ${path}`, async () => {
        // In formats with several places for the name, the first event has the right name or none.
        for (const [model, value] of [
          ['plain-up', 300_000n],
          ['dear-up-2026-01-31', 3_010_000n],
        ] as const) {
          // The first event of a chat stream has the right name. In other formats it has none and is longer than the part that is examined first.
          const head = provider === 'alpha' ? chatChunk('plain-up', { content: '' }) : `: ${'-'.repeat(9000)}\n\n`
          servers[provider]?.script([{ rawStream: [head, ...spoken.honest(model)] }])
          const reply = await call(path, provider)
          expect(reply.status, reply.text).toBe(200)
          const [row] = await usageRows(app)
          expect([row?.completionTokens, row?.valueUinr], model).toEqual([300n, value])
        }
      })

  test('HARD-16 for usage at any place, the charge so far is at least the reported usage plus later output, and at least all output', () => {
    const part = fc.oneof(
      fc.record({ chars: fc.integer({ min: 0, max: 200 }), told: fc.constant(null) }),
      fc.record({ chars: fc.integer({ min: 0, max: 200 }), told: fc.integer({ min: 0, max: 500 }) }),
    )
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), fc.integer({ min: 1, max: 400 }), fc.boolean(), (parts, size, isAlone) => {
        const context = {
          model: 'm',
          request: {},
          promptTokens: 9,
          nowSeconds: 7,
          newId: (prefix: string) => prefix,
          bill: () => ({ cost_inr: 0, value_inr: 0, provider: '' }),
        }
        const adapter = new ChatRelayAdapter(chatFormat, context, { withholdsUsage: false, echo: null })
        let chars = 0
        let told = 0
        let toldChars = 0
        let bytes = ''
        for (const { chars: more, told: next } of parts) {
          bytes += chatChunk('m', { content: 'x'.repeat(more) }, next === null || isAlone ? {} : { usage: usageOf(next) })
          if (isAlone && next !== null) bytes += event({ id: 'c', model: 'm', choices: [], usage: usageOf(next) })
          chars += more
          if (next !== null) [told, toldChars] = [next, chars]
        }
        for (let at = 0; at < bytes.length; at += size) adapter.push(Buffer.from(bytes.slice(at, at + size)))
        const { completionTokens } = adapter.usage()
        const since = Math.ceil((chars - toldChars) / 3)
        // A separate usage chunk without later output is used unchanged, because it may be the last.
        const isLast = isAlone && since === 0 && parts.some(({ told: any }) => any !== null)
        expect(completionTokens).toBe(isLast ? told : Math.max(told + since, Math.ceil(chars / 3)))
      }),
    )
  })
})
