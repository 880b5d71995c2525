import { z } from 'zod'
import type { McpRows } from '../mcp-rows.ts'
import { counted, line } from './toolbox/text-lines.ts'
import { jsonOf, plainJson, rowTool, type Tool } from './toolbox/tool.ts'

const pageDefault = 20
const pageMax = 100
const idsMax = 50

const catalogEntry = z.looseObject({
  id: z.string(),
  kind: z.string(),
  residency: z.string(),
  modalities: z.array(z.string()),
  tools: z.boolean(),
  context_length: z.number().nullish(),
  dimensions: z.number().nullish(),
  inrPerImage: z.number().nullish(),
  pricing: z.looseObject({
    inputINRPerMtok: z.number(),
    outputINRPerMtok: z.number(),
    inrPerMinute: z.number().nullish(),
    inrPerMillionCharacters: z.number().nullish(),
    inrPerThousandSearches: z.number().nullish(),
  }),
  routes: z.array(z.looseObject({ provider: z.string(), available: z.boolean(), configured: z.boolean() })),
})
type CatalogEntry = z.output<typeof catalogEntry>

const inputSchema = z.object({
  query: z.string().max(200).optional().describe('Words that the model id must contain.'),
  kind: z
    .enum(['chat', 'embedding', 'image', 'transcription', 'speech', 'rerank', 'moderation', 'virtual'])
    .optional()
    .describe('chat and virtual are for the chat tool.'),
  modality: z.string().optional().describe('text, image, audio, embedding, reasoning …'),
  tools: z.boolean().optional().describe('true: only models that can call functions.'),
  residency: z.enum(['india', 'global']).optional().describe('india: has a route in India.'),
  max_price: z
    .number()
    .min(0)
    .optional()
    .describe('Most rupees per million tokens, of input and of output; per image, minute or million characters for models that are priced so.'),
  available: z.boolean().optional().describe('true: only models that work now, without a key that somebody has to save first.'),
  ids: z.array(z.string().min(1)).min(1).max(idsMax).optional().describe('Only these ids.'),
  limit: z.number().int().min(1).max(pageMax).default(pageDefault),
  cursor: z
    .string()
    .regex(/^\d{1,6}$/, 'is not a next_cursor of this tool')
    .optional()
    .describe('next_cursor of the page before.'),
})
type Wanted = z.output<typeof inputSchema>

const outputSchema = z.object({
  models: z.array(z.looseObject({ id: z.string() })),
  total: z.number().int().describe('How many match.'),
  next_cursor: z.string().nullable(),
  unknown_ids: z.array(z.string()).optional().describe('Those of ids that this credential has no model of.'),
})

/** The tool models_list shows the catalog in pages. It omits the routes of each model, because they would fill a context window. */
export function modelsTool(row: McpRows['listModels']): Tool {
  return rowTool({
    name: 'models_list',
    toolset: 'core',
    title: 'Models',
    description: 'Models that this credential may use, with prices in rupees, context length, modalities, residency and whether they work now.',
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    row,
    inputSchema,
    outputSchema,
    toInput: () => ({}),
    toResult: (value, args) => {
      const { data } = z.looseObject({ data: z.array(catalogEntry) }).parse(plainJson(jsonOf(value)))
      const found = data.filter(entry => matches(entry, args))
      // Available models come first, because an agent tends to take one from the top.
      const matching = [...found.filter(isAvailable), ...found.filter(entry => !isAvailable(entry))]
      const start = Number(args.cursor ?? 0)
      const page = matching.slice(start, start + args.limit)
      const end = start + args.limit
      const next = end < matching.length ? String(end) : null
      const known = new Set(data.map(({ id }) => id))
      const unknown = args.ids?.filter(id => !known.has(id)) ?? []
      return {
        text: [
          matching.length === 0
            ? 'No model matches. Leave a filter out.'
            : `${counted(matching.length, 'model')}${next === null && start === 0 ? '' : `, ${start + 1} to ${start + page.length}`}:`,
          ...page.map(asLine),
          ...(unknown.length === 0 ? [] : [`Unknown or not allowed: ${unknown.join(', ')}`]),
          ...(next === null ? [] : [`More with cursor "${next}".`]),
        ].join('\n'),
        structured: {
          models: page.map(withoutRoutes),
          total: matching.length,
          next_cursor: next,
          ...(unknown.length === 0 ? {} : { unknown_ids: unknown }),
        },
      }
    },
  })
}

function matches(entry: CatalogEntry, args: Wanted): boolean {
  const words = (args.query ?? '')
    .toLowerCase()
    .split(/\s+/)
    .filter(word => word !== '')
  return (
    words.every(word => entry.id.toLowerCase().includes(word)) &&
    (args.kind === undefined || entry.kind === args.kind) &&
    (args.modality === undefined || entry.modalities.includes(args.modality)) &&
    (args.tools !== true || entry.tools) &&
    (args.residency === undefined || entry.residency === args.residency) &&
    (args.max_price === undefined || prices(entry).every(price => price <= (args.max_price ?? 0))) &&
    (args.available !== true || isAvailable(entry)) &&
    (args.ids?.includes(entry.id) ?? true)
  )
}

const isAvailable = ({ routes }: CatalogEntry): boolean => routes.some(route => route.available && route.configured)
const isConfigured = ({ routes }: CatalogEntry): boolean => routes.some(route => route.configured)
const providersOf = ({ routes }: CatalogEntry): string[] => [...new Set(routes.map(route => route.provider))]

/** Returns every price of a model, each in the unit of its kind. */
function prices({ pricing, inrPerImage }: CatalogEntry): number[] {
  const given = [inrPerImage, pricing.inrPerMinute, pricing.inrPerMillionCharacters].filter(price => typeof price === 'number')
  return given.length > 0 ? given : [pricing.inputINRPerMtok, pricing.outputINRPerMtok]
}

function priceText({ kind, pricing, inrPerImage }: CatalogEntry): string {
  if (typeof inrPerImage === 'number') return `₹${inrPerImage} an image`
  if (typeof pricing.inrPerMinute === 'number') return `₹${pricing.inrPerMinute} a minute`
  if (typeof pricing.inrPerMillionCharacters === 'number') return `₹${pricing.inrPerMillionCharacters} per million characters`
  const output = kind === 'embedding' ? '' : `, ₹${pricing.outputINRPerMtok} out`
  return `₹${pricing.inputINRPerMtok} in${output} per million tokens`
}

function asLine(entry: CatalogEntry): string {
  const { id, kind, modalities, tools, residency, context_length: context, dimensions } = entry
  return line(
    id,
    kind,
    priceText(entry),
    typeof context === 'number' && `context ${context}`,
    typeof dimensions === 'number' && `${dimensions} dimensions`,
    modalities.join('+'),
    tools && 'tools',
    residency === 'india' && 'india',
    `by ${providersOf(entry).join(', ')}`,
    !isConfigured(entry) ? 'NOT CONFIGURED: only with a provider key that your organisation has saved' : !isAvailable(entry) && 'NOT AVAILABLE NOW',
  )
}

/** Returns the entry with the ids of its providers instead of its routes. `available` is true when the gateway could serve a call now. */
function withoutRoutes(entry: CatalogEntry): { id: string; [field: string]: unknown } {
  const { routes: _routes, ...rest } = entry
  return { ...rest, providers: providersOf(entry), available: isAvailable(entry) }
}
