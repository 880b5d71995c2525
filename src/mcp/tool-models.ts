import { z } from 'zod'
import type { AnyRow } from '../platform/endpoint.ts'
import { jsonOf, plainJson, rowTool, type Tool } from './tool.ts'

const pageDefault = 20
const pageMax = 100

const catalogEntry = z.looseObject({
  id: z.string(),
  kind: z.string(),
  residency: z.string(),
  modalities: z.array(z.string()),
  tools: z.boolean(),
  routes: z.array(z.looseObject({ provider: z.string(), available: z.boolean() })),
})
type CatalogEntry = z.output<typeof catalogEntry>

const inputSchema = z.object({
  query: z.string().optional().describe('Words that the model id must contain.'),
  kind: z.enum(['chat', 'embedding', 'image', 'transcription', 'speech', 'virtual']).optional().describe('chat and virtual are for the chat tool.'),
  modality: z.string().optional().describe('text, image, audio, embedding, reasoning …'),
  tools: z.boolean().optional().describe('true: only models that can call functions.'),
  residency: z.enum(['india', 'global']).optional(),
  limit: z.number().int().min(1).max(pageMax).default(pageDefault),
  cursor: z
    .string()
    .regex(/^\d{1,6}$/)
    .optional()
    .describe('next_cursor of the page before.'),
})

const outputSchema = z.object({
  models: z.array(z.looseObject({ id: z.string() })),
  total: z.number().int().describe('How many match.'),
  next_cursor: z.string().nullable(),
})

/** models_list: the catalog in pages, without the routes of each model, which would fill a context window. */
export function modelsTool(row: AnyRow): Tool {
  return rowTool({
    name: 'models_list',
    toolset: 'core',
    title: 'Models',
    description: 'Models of this gateway, with prices in rupees per million tokens, context length, modalities and residency.',
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    row,
    inputSchema,
    outputSchema,
    toInput: () => ({}),
    toResult: (value, args) => {
      const { data } = z.looseObject({ data: z.array(catalogEntry) }).parse(plainJson(jsonOf(value)))
      const matching = data.filter(entry => matches(entry, args))
      const start = Number(args.cursor ?? 0)
      const models = matching.slice(start, start + args.limit).map(withoutRoutes)
      const next = start + args.limit
      const page = { models, total: matching.length, next_cursor: next < matching.length ? String(next) : null }
      return { text: JSON.stringify(page), structured: page }
    },
  })
}

function matches(entry: CatalogEntry, args: z.output<typeof inputSchema>): boolean {
  const words = (args.query ?? '')
    .toLowerCase()
    .split(/\s+/)
    .filter(word => word !== '')
  return (
    words.every(word => entry.id.toLowerCase().includes(word)) &&
    (args.kind === undefined || entry.kind === args.kind) &&
    (args.modality === undefined || entry.modalities.includes(args.modality)) &&
    (args.tools !== true || entry.tools) &&
    (args.residency === undefined || entry.residency === args.residency)
  )
}

/** The entry with the ids of its providers in place of its routes; `available` is true when any route is. */
function withoutRoutes({ routes, ...entry }: CatalogEntry): { id: string; [field: string]: unknown } {
  return { ...entry, providers: [...new Set(routes.map(route => route.provider))], available: routes.some(route => route.available) }
}
