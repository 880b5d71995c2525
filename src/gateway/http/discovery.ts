import { z } from 'zod'
import { endpointOf, reply } from '../../platform/endpoint.ts'

/** What discovery needs to know; app.ts builds it from the table and the live catalog. */
export interface Discovery {
  openApi(baseUrl: string): object
  llmsText(baseUrl: string): string
  health(): object
}

const row = endpointOf<{ discovery: Discovery }>()

const routeHealth = z.object({ model: z.string(), provider: z.string(), available: z.boolean(), circuit: z.enum(['closed', 'open']) })

export const discoveryEndpoints = {
  health: row({
    at: 'GET /health',
    auth: 'public',
    access: {},
    tag: 'discovery',
    summary: 'Which providers are configured, and the circuit of every route. Always 200; status says whether this process serves.',
    input: {},
    output: z.object({
      status: z.enum(['ok', 'draining', 'database_away', 'journal_full']),
      version: z.string(),
      providers: z.array(z.object({ id: z.string(), configured: z.boolean(), residency: z.string() })),
      routes: z.array(routeHealth),
    }),
    errors: [],
    always: true,
    handle: ({ discovery }) => discovery.health(),
  }),
  openApi: row({
    at: 'GET /openapi.json',
    auth: 'public',
    access: {},
    tag: 'discovery',
    summary: 'This API as OpenAPI 3.1.',
    input: {},
    output: z.looseObject({ openapi: z.string() }),
    errors: [],
    handle: ({ discovery }, _input, call) => discovery.openApi(call.baseUrl),
  }),
  llmsText: row({
    at: 'GET /llms.txt',
    auth: 'public',
    access: {},
    tag: 'discovery',
    summary: 'What this gateway offers, in plain text for a model to read.',
    input: {},
    output: { media: 'text/plain' },
    errors: [],
    handle: ({ discovery }, _input, call) => reply.text(discovery.llmsText(call.baseUrl), 'text/plain; charset=utf-8'),
  }),
}
