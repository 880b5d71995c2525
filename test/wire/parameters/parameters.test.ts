/**
 * Tests every parameter of the three client formats at a provider of another format. It is carried, named in x-br-dropped-params, or refused with a
 * message. The installed SDKs give the types of the tables, so a new parameter of an SDK needs a row.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { modelOfDialect } from '../../harness/dialect-upstreams.ts'
import type { UpstreamServer } from '../../harness/upstream-server.ts'
import { chatFields, chatTargets, otherChatFields } from './chat-fields.ts'
import { assistantFields, chatMessages, chatParts, chatTools, otherChatParts } from './chat-parts.ts'
import type { Fate, Row } from './fate.ts'
import { messagesBlockFields, messagesBlocks } from './messages-blocks.ts'
import { messagesFields, messagesTargets, otherMessagesFields } from './messages-fields.ts'
import { otherResponsesFields, responsesFields, responsesTargets } from './responses-fields.ts'
import { callFields, functionFields, otherResponsesItems, responsesItems, responsesParts, responsesTools } from './responses-items.ts'

type Dialect = keyof typeof modelOfDialect
type Table = Readonly<Record<string, { readonly body: Row<Dialect>['body']; readonly fate: Partial<Row<Dialect>['fate']> }>>

interface Client {
  readonly path: string
  readonly targets: readonly Dialect[]
  readonly base: Readonly<Record<string, unknown>>
  readonly tables: readonly Table[]
}

const clients: readonly Client[] = [
  {
    path: '/v1/chat/completions',
    targets: chatTargets,
    base: { max_tokens: 2000, messages: [{ role: 'user', content: 'Hello there' }] },
    tables: [chatFields, otherChatFields, chatMessages, assistantFields, chatParts, chatTools, otherChatParts],
  },
  {
    path: '/v1/messages',
    targets: messagesTargets,
    base: { max_tokens: 2000, messages: [{ role: 'user', content: 'Hello there' }] },
    tables: [messagesFields, otherMessagesFields, messagesBlocks, messagesBlockFields],
  },
  {
    path: '/v1/responses',
    targets: responsesTargets,
    base: { max_output_tokens: 2000, input: 'Hello there' },
    tables: [responsesFields, otherResponsesFields, responsesItems, responsesTools, responsesParts, callFields, functionFields, otherResponsesItems],
  },
]

describe('parameters of the client formats at providers of other formats', () => {
  let app: TestApp
  let servers: readonly UpstreamServer[]
  beforeAll(async () => {
    app = await startApp({ dialects: true, env: { CIRCUIT_FAILURES: '1000' } })
    servers = [app.alpha, app.others.claude, app.others.gem, app.others.resp]
  })
  afterAll(() => app.stop())

  /** Returns how the actual fate of these fields differs from the table, or null when it does not. */
  async function wrongness(path: string, body: object, fate: Fate): Promise<string | null> {
    for (const server of servers) server.reset()
    const reply = await app.call('POST', path, body)
    const sent = servers
      .flatMap(server => server.requests)
      .map(request => `${request.path} ${JSON.stringify(request.json)}`)
      .join('\n')
    if (fate.kind === 'refused') {
      const words = reply.status === 400 ? String(reply.json?.error?.message) : ''
      return words.includes(fate.words) && sent === '' ? null : `${reply.status} ${reply.text} ${sent}`
    }
    if (reply.status !== 200) return `${reply.status} ${reply.text}`
    const named = (reply.headers.get('x-br-dropped-params')?.split(',') ?? []).toSorted().join()
    const expected = (fate.kind === 'dropped' ? fate.names : fate.kind === 'carried' ? fate.dropped : []).toSorted().join()
    if (named !== expected) return `named as dropped: "${named}", not "${expected}"; sent ${sent}`
    return fate.kind === 'carried' && !sent.includes(fate.text) ? `sent ${sent}` : null
  }

  for (const { path, base, tables, targets } of clients)
    for (const dialect of targets)
      test(`every parameter of ${path} is carried to a ${dialect} provider, named as dropped, or refused`, async () => {
        const wrong: string[] = []
        for (const [name, { body, fate }] of tables.flatMap(table => Object.entries(table))) {
          const expected = fate[dialect]
          if (expected === undefined) continue
          const found = await wrongness(path, { model: modelOfDialect[dialect], ...base, ...body }, expected)
          if (found !== null) wrong.push(`${name} (${expected.kind}): ${found}`)
        }
        expect(wrong).toEqual([])
      })
})
