import { z } from 'zod'
import type { AnyRow } from '../platform/endpoint.ts'
import { jsonOf, plainJson, rowTool, type Tool } from './tool.ts'

const pageDefault = 20
const pageMax = 100

const catalogEntry = z.looseObject({ id: z.string(), residency: z.unknown(), modalities: z.array(z.string()).optional(), tools: z.boolean().optional() })
type CatalogEntry = z.output<typeof catalogEntry>

const inputSchema = z.object({
  query: z.string().optional().describe('Words that the model id must contain.'),
  modality: z.string().optional().describe('text, image, audio, embedding, reasoning …'),
  tools: z.boolean().optional().describe('true: only models that can call functions.'),
  residency: z.string().optional().describe('For example india.'),
  limit: z.number().int().min(1).max(pageMax).default(pageDefault),
  cursor: z.string().regex(/^\d{1,6}$/).optional().describe('next_cursor of the page before.'),
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
    title: 'Models',
    description: 'Models that chat can ask, with prices in rupees per million tokens, context length, modalities and residency.',
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
  const words = (args.query ?? '').toLowerCase().split(/\s+/).filter(word => word !== '')
  if (!words.every(word => entry.id.toLowerCase().includes(word))) return false
  if (args.modality !== undefined && !entry.modalities?.includes(args.modality)) return false
  if (args.tools === true && entry.tools !== true) return false
  return args.residency === undefined || residenciesOf(entry).includes(args.residency)
}

/** A model's residency is one word or a list of them. */
function residenciesOf(entry: CatalogEntry): unknown[] {
  return Array.isArray(entry.residency) ? entry.residency : [entry.residency]
}

/** The entry with the ids of its providers in place of its routes; `available` is true when any route is. */
function withoutRoutes(entry: CatalogEntry): { id: string; [field: string]: unknown } {
  const { routes, ...rest } = entry
  const list = z.array(z.looseObject({ provider: z.string().optional(), available: z.boolean().optional() })).safeParse(routes)
  if (!list.success) return rest
  return { ...rest, providers: list.data.map(route => route.provider), available: list.data.some(route => route.available !== false) }
}
