import { z } from 'zod'
import { endpointOf, type Reply } from '../../../platform/endpoint.ts'
import { planningErrors } from '../../../platform/errors.ts'
import type { Inference } from '../inference.ts'
import type { CallInput } from '../kinds/request.ts'
import { charging } from './charging-errors.ts'
import { imageFields, routerFields } from './schemas.ts'

const row = endpointOf<{ inference: Inference }>()

const block = z.looseObject({ type: z.string() })
const content = z.union([z.string(), z.array(block)])

const asked = {
  model: z.string().describe('claude-* runs on your own credential; every other catalog id or auto:* preset is translated.'),
  messages: z.array(z.looseObject({ role: z.string(), content })).min(1),
  system: content.optional(),
  tools: z
    .array(z.looseObject({ name: z.string() }))
    .optional()
    .describe('Server tools (web search, bash, …) run with claude-* only.'),
  tool_choice: block.optional(),
  thinking: block.optional(),
  ...routerFields,
  ...imageFields,
}

const hello = { model: 'sandbox-chat', messages: [{ role: 'user', content: 'Hello' }] }

const requestSchema = z
  .looseObject({
    ...asked,
    max_tokens: z.int().positive().describe('Ceiling of thinking and answer together; never charged past it.'),
    stream: z.boolean().optional(),
  })
  .meta({ examples: [{ ...hello, max_tokens: 200 }] })

const countSchema = z.looseObject(asked).meta({ examples: [hello] })

const responseSchema = z.looseObject({
  id: z.string(),
  type: z.literal('message'),
  role: z.literal('assistant'),
  model: z.string(),
  content: z.array(block),
  stop_reason: z.string().nullable(),
  usage: z.looseObject({ input_tokens: z.int(), output_tokens: z.int() }),
})

const text = z.string().optional()

const headers = z.object({
  authorization: text.describe(
    'The gateway key as a bearer token, or, with the key in another header, your own provider credential: it goes on to the provider of claude-* untouched.',
  ),
  'x-br-api-key': text.describe('The gateway key. Counts before the other two.'),
  'x-api-key': text.describe('The gateway key, or your own provider key, which goes on as Authorization does.'),
  'x-br-overflow': text.describe('byok: when the forwarded credential has run into its rate limit, the saved key is used.'),
  'anthropic-version': text,
  'anthropic-beta': text,
})

const query = z.record(z.string(), z.union([z.string(), z.array(z.string())]))

interface Sent {
  readonly body: Buffer
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly query: z.output<typeof query>
}

const inputOf = (sent: Sent): CallInput => ({ bytes: sent.body, headers: sent.headers, query: queryText(sent.query) })

function queryText(query: Sent['query']): string {
  const names = Object.keys(query)
  if (names.length === 0) return ''
  return new URLSearchParams(names.flatMap(name => [query[name] ?? ''].flat().map((value): [string, string] => [name, value]))).toString()
}

export const messagesEndpoints = {
  messages: row({
    at: 'POST /v1/messages',
    auth: 'key',
    access: { agentScope: 'inference' },
    tag: 'inference',
    summary: 'Anthropic messages, streamed or not: claude-* relayed on your own credential, every other model translated.',
    input: { headers, query, body: requestSchema, bodyKind: 'inference' },
    output: responseSchema,
    errors: charging,
    clients: 'anthropic',
    inference: true,
    handle: ({ inference }, input, call): Promise<Reply> => inference.messages(inputOf(input), call),
  }),
  countTokens: row({
    at: 'POST /v1/messages/count_tokens',
    auth: 'key',
    access: { agentScope: 'inference' },
    tag: 'inference',
    summary: "Tokens of a messages request: the provider's count for claude-*, an estimate for every other model. Not charged.",
    input: { headers, query, body: countSchema, bodyKind: 'inference' },
    output: z.looseObject({ input_tokens: z.int() }),
    errors: [...planningErrors, 'all_routes_failed', 'database_unavailable'],
    clients: 'anthropic',
    audit: false,
    handle: ({ inference }, input, call): Promise<Reply> => inference.countTokens(inputOf(input), call),
  }),
}
