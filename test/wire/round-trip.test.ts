/** Invariant (viii): a request that was translated once does not change in further translations, and every field that cannot be carried is named. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { HubRequest, ModelTraits, Target } from '../../src/gateway/providers/dialect.ts'
import { dialectOf, hasDialect } from '../../src/gateway/providers/dialects.ts'
import type { DialectId } from '../../src/gateway/providers/provider.ts'
import { messagesToHub } from '../../src/gateway/wire/messages/request/to-hub.ts'
import { responsesToChat } from '../../src/gateway/wire/responses/request/to-chat.ts'
import { propertyRuns } from '../harness/property-runs.ts'
import { chatRequests, rareFields } from './turns/requests.ts'

const numRuns = propertyRuns(300)
type Body = Readonly<Record<string, unknown>>

const traits: ModelTraits = { maxOutputTokens: 8192, supportedParameters: [], reasoning: true, efforts: ['low', 'medium', 'high'], alwaysThinks: false }

function targetOf(dialect: DialectId): Target {
  const provider = {
    id: 'p',
    name: 'P',
    dialect,
    baseUrl: 'http://127.0.0.1:1/v1',
    auth: 'none' as const,
    residency: 'global' as const,
    byok: true,
    keyShape: null,
    quirks: [],
    platformKey: null,
    configured: true,
  }
  return { provider, upstreamModel: 'the-model', credential: null, forwarded: null, traits }
}

function sent(dialect: DialectId, body: Body): { body: Record<string, unknown>; dropped: readonly string[] } {
  const request: HubRequest = { operation: 'chat', body, bytes: null, stream: false, dropped: [] }
  const { body: written, dropped } = dialectOf(dialect).request(request, targetOf(dialect))
  return { body: JSON.parse(String(written)) as Record<string, unknown>, dropped }
}

const ways: readonly { dialect: DialectId; back: (body: Body) => { readonly body: Body } }[] = [
  { dialect: 'anthropic', back: messagesToHub },
  { dialect: 'openai-responses', back: responsesToChat },
]

for (const { dialect, back } of ways.filter(way => hasDialect(way.dialect))) {
  const around = (body: Body): Body => JSON.parse(JSON.stringify(back(sent(dialect, body).body).body)) as Body
  describe(`OpenAI > ${dialect} > OpenAI`, () => {
    test('a second translation does not change the request', () => {
      fc.assert(
        fc.property(chatRequests, request => {
          const once = around(request)
          expect(around(once)).toEqual(once)
        }),
        { numRuns },
      )
    })

    test('a translation keeps the whole conversation', () => {
      fc.assert(
        fc.property(chatRequests, request => {
          expect(saidIn(around(request))).toEqual(saidIn(request))
        }),
        { numRuns },
      )
    })
  })
}

for (const dialect of (['anthropic', 'gemini', 'openai-responses'] as const).filter(hasDialect))
  test(`${dialect}: every field of a request is carried or named as dropped`, () => {
    fc.assert(
      fc.property(chatRequests, rareFields, (request, rare) => {
        const { body, dropped } = sent(dialect, { ...request, ...rare })
        const text = JSON.stringify(body)
        for (const name of Object.keys(rare)) {
          const camel = name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
          const isCarried = [name, camel, 'candidateCount', 'responseLogprobs'].some(key => text.includes(`"${key}"`))
          expect(dropped.includes(name) || isCarried, `${name} is neither in ${text} nor among ${dropped.join(',')}`).toBe(true)
        }
      }),
      { numRuns },
    )
  })

/** Returns the content of a conversation by role: joined texts, calls with parsed arguments, and tool results with the id of their call. */
function saidIn({ messages }: Body): object {
  const said = { told: '', user: '', assistant: '', images: [] as string[], calls: [] as object[], results: [] as object[] }
  for (const message of messages as readonly Record<string, unknown>[]) {
    const text = textIn(message['content'], said.images)
    if (message['role'] === 'user') said.user += text
    else if (message['role'] === 'assistant') said.assistant += text
    else if (message['role'] === 'tool') said.results.push({ id: message['tool_call_id'], text })
    else said.told += text
    const calls = (message['tool_calls'] ?? []) as readonly { id: string; function: { name: string; arguments: string } }[]
    for (const { id, function: made } of calls) said.calls.push({ id, name: made.name, input: JSON.parse(made.arguments) })
  }
  // White space is removed, because a translation may put line breaks between joined texts of one role.
  return {
    ...said,
    told: said.told.replaceAll(/\s+/g, ''),
    user: said.user.replaceAll(/\s+/g, ''),
    assistant: said.assistant.replaceAll(/\s+/g, ''),
    results: said.results.map(result => JSON.parse(JSON.stringify(result).replaceAll('\\n', ''))),
  }
}

function textIn(content: unknown, images: string[]): string {
  if (!Array.isArray(content)) return typeof content === 'string' ? content : ''
  return (content as readonly { type: string; text?: string; image_url?: { url: string } }[])
    .map(part => {
      if (part.image_url !== undefined) images.push(part.image_url.url)
      return part.text ?? ''
    })
    .join('')
}
