import { z } from 'zod'
import { endpointOf } from '../../../platform/endpoint.ts'
import type { PublicDocument } from './public-document.ts'

/** The data that the discovery endpoints return. composition/edges/discovery.ts builds it from the endpoint table and the live catalog. */
export interface Discovery {
  readonly openApi: PublicDocument
  readonly llmsText: PublicDocument
  health(): object
}

const row = endpointOf<{ discovery: Discovery }>()

/** Readers revalidate on each request, because a new version of the gateway may start at any time. */
const revalidated = { 'cache-control': 'no-cache' }
const conditional = z.object({ 'if-none-match': z.string().optional() })

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
    input: { headers: conditional },
    output: z.looseObject({ openapi: z.string() }),
    errors: [],
    handle: ({ discovery }, { headers }, call) =>
      discovery.openApi.reply(call.baseUrl, headers['if-none-match'], 'application/json; charset=utf-8', revalidated),
  }),
  llmsText: row({
    at: 'GET /llms.txt',
    auth: 'public',
    access: {},
    tag: 'discovery',
    summary: 'What this gateway offers, in plain text for a model to read.',
    input: { headers: conditional },
    output: { media: 'text/plain' },
    errors: [],
    handle: ({ discovery }, { headers }, call) => discovery.llmsText.reply(call.baseUrl, headers['if-none-match'], 'text/plain; charset=utf-8', revalidated),
  }),
}
