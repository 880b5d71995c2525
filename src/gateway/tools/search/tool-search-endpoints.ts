import { z } from 'zod'
import { endpointOf } from '../../../platform/endpoint.ts'
import { inrFromUinr } from '../../../platform/values/money.ts'
import type { ToolCalls } from '../calls/tool-calls.ts'
import type { CallableTool } from '../registry/callable-tool.ts'
import { parametersOf, requiredOf } from './tool-index.ts'

const row = endpointOf<{ toolCalls: ToolCalls }>()

/** Bounds of what one result repeats of a definition. */
const textMaxChars = 300
const namesMax = 30

const found = z.object({
  name: z.string().describe('The public name: <slug>__<tool>.'),
  server: z.string().describe('The slug of its server.'),
  title: z.string().nullable(),
  description: z.string().describe(`The first ${textMaxChars} characters. It is text of the server.`),
  arguments: z.array(z.string()).describe(`Names of its arguments, at most ${namesMax}.`),
  required: z.array(z.string()).describe('Those that it requires.'),
  price_inr: z.number().describe('What a call costs, in rupees.'),
})

export const toolSearchEndpoints = {
  searchTools: row({
    at: 'GET /v1/tools/search',
    auth: 'key',
    access: { agentScope: 'tools:call' },
    tag: 'tools',
    summary: 'The tools of MCP servers that this credential may call now and that fit a question best. No server and no model is asked.',
    input: {
      query: z.object({
        q: z.string().min(1).max(500).describe('What the tool should do, in words.'),
        limit: z.coerce.number().int().min(1).max(50).default(10).describe('Tools at most, best first.'),
      }),
    },
    output: z.object({ tools: z.array(found) }),
    errors: ['forbidden', 'unavailable', 'bad_request', 'database_unavailable'],
    requires: ({ toolCalls }) => toolCalls.requireOn(),
    handle: async ({ toolCalls }, { query: { q, limit } }, call) => ({ tools: (await toolCalls.search(call, q, limit)).map(foundOf) }),
  }),
}

function foundOf({ publicName, slug, definition, priceUinr }: CallableTool): z.output<typeof found> {
  const { title, description } = definition as { readonly title?: unknown; readonly description?: unknown }
  return {
    name: publicName,
    server: slug,
    title: typeof title === 'string' ? title.slice(0, textMaxChars).toWellFormed() : null,
    description: typeof description === 'string' ? description.slice(0, textMaxChars).toWellFormed() : '',
    arguments: parametersOf(definition).slice(0, namesMax),
    required: requiredOf(definition).slice(0, namesMax),
    price_inr: inrFromUinr(priceUinr),
  }
}
