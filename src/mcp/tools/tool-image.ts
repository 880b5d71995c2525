import { z } from 'zod'
import { imageTypeOf } from '../../gateway/wire/images.ts'
import { brHeader } from '../../gateway/wire/response-headers.ts'
import { Reply } from '../../platform/endpoint.ts'
import { fail } from '../../platform/errors.ts'
import type { McpRows } from '../mcp-rows.ts'
import { counted, line, rupees } from './toolbox/text-lines.ts'
import { type ContentBlock, customTool, type Tool, type ToolContext, type ToolResult } from './toolbox/tool.ts'
import { providerAnswerInTurns } from './toolbox/tool-errors.ts'

/** Maximum size of a picture in base64 characters. A larger picture is returned as a link if it has one. Clients refuse messages of many megabytes. */
const blockMaxChars = 4 * 1024 * 1024
/** How often progress is reported. A picture may take a minute, and a client that receives nothing gives up. */
const sayEveryMs = 5000

const replyShape = z.looseObject({
  data: z.array(z.looseObject({ url: z.string().nullish(), b64_json: z.string().nullish() })).min(1),
  br_sangam: z.looseObject({ chosen: z.looseObject({ model: z.string() }), reason: z.string() }).nullish(),
})

const inputSchema = z.object({
  prompt: z.string().min(1).describe('What to draw.'),
  model: z.string().min(1).max(256).optional().describe('Id of an image model; models_list with kind "image" lists them. Left out: the usual one.'),
  size: z
    .string()
    .regex(/^[1-9]\d{0,4}x[1-9]\d{0,4}$/, 'must be WIDTHxHEIGHT, such as 1024x1024')
    .optional()
    .describe('WIDTHxHEIGHT in pixels. Default: 1024x1024.'),
  n: z.number().int().min(1).max(4).default(1).describe('How many pictures.'),
  quality: z.string().min(1).optional().describe('Where the provider knows it.'),
  deliver: z.enum(['image', 'link']).default('image').describe('image: the pictures themselves. link: addresses, which end after a while.'),
  provider: z.string().min(1).optional().describe('Pin one provider id.'),
  data_policy: z.enum(['india_only']).optional().describe('india_only: nothing leaves India.'),
  exclude: z.array(z.string().min(1)).max(50).optional().describe('Providers, or provider/model, never to be used.'),
})
type Wanted = z.output<typeof inputSchema>

const outputSchema = z.object({
  images: z.array(
    z.object({
      type: z.enum(['image', 'link']),
      mime_type: z.string().nullable(),
      bytes: z.number().int().nullable().describe('Size of a picture that is in the content.'),
      url: z.string().optional(),
    }),
  ),
  model: z.string(),
  provider: z.string().nullable(),
  cost_inr: z.number().nullable(),
  reason: z.string().optional().describe('Of a panel: why this picture.'),
  request_id: z.string(),
})

/** The tool image_generate returns pictures as content blocks, or as links. */
export function imageTool(row: McpRows['generateImages']): Tool {
  return customTool({
    name: 'image_generate',
    toolset: 'images',
    title: 'Draw',
    description: 'Draw pictures from a prompt. Costs money for each picture and counts against your budgets. The prompt goes to a provider.',
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true },
    row,
    inputSchema,
    outputSchema,
    run: (args, context) => draw(row, args, context),
  })
}

async function draw(row: McpRows['generateImages'], args: Wanted, context: ToolContext): Promise<ToolResult> {
  const { deliver, ...fields } = args
  const body = { ...fields, response_format: deliver === 'link' ? 'url' : 'b64_json' }
  let model = args.model ?? null
  const stop = saying(context)
  try {
    const onRoute = ({ model: tried }: { model: string }): void => {
      model = tried
    }
    const value = await context.invoker.call(row, { body: Buffer.from(JSON.stringify(body)) }, { ...context.call, onRoute })
    return await resultOf(value, model ?? '', context.call.requestId)
  } finally {
    stop()
  }
}

/** Reports progress to a client that asked for it, until the returned function is called. */
function saying({ report, clock }: ToolContext): () => void {
  if (!report) return () => undefined
  let seconds = 0
  let stop: () => void = () => undefined
  const say = (): void => {
    report({ progress: seconds, message: seconds === 0 ? 'drawing' : `drawing, ${seconds} s` })
    seconds += sayEveryMs / 1000
    stop = clock.after(sayEveryMs, say)
  }
  say()
  return () => stop()
}

async function resultOf(value: unknown, model: string, requestId: string): Promise<ToolResult> {
  const headers = value instanceof Reply ? value.headers : {}
  const { data, br_sangam: panel } = await providerAnswerInTurns(replyShape, value)
  const drawn = data.map(pictureOf)
  const cost = headers[brHeader.costInr]
  const provider = headers[brHeader.provider] ?? null
  const by = panel?.chosen.model ?? model
  const links = drawn.flatMap(({ block }) => (block.type === 'resource_link' ? [block.uri] : []))
  return {
    text: [line(counted(drawn.length, 'picture'), provider === null ? by : `${by} at ${provider}`, cost !== undefined && rupees(Number(cost))), ...links].join(
      '\n',
    ),
    structured: {
      images: drawn.map(({ entry }) => entry),
      model: by,
      provider,
      cost_inr: cost === undefined ? null : Number(cost),
      ...(panel ? { reason: panel.reason } : {}),
      request_id: requestId,
    },
    more: drawn.map(({ block }) => block),
  }
}

/** Returns a picture as a content block, or as a link. A link is used when the picture has a URL and either is too large or has no bytes. */
function pictureOf({ url, b64_json: base64 }: z.output<typeof replyShape>['data'][number], index: number): { block: ContentBlock; entry: object } {
  if (base64 && (base64.length <= blockMaxChars || !url)) {
    const bytes = Buffer.from(base64, 'base64')
    const mimeType = imageTypeOf(bytes) ?? 'image/png'
    return { block: { type: 'image', data: base64, mimeType }, entry: { type: 'image', mime_type: mimeType, bytes: bytes.length } }
  }
  if (!url) throw fail('all_routes_failed', { message: 'The provider answered with a picture that has no address and no bytes.' })
  return { block: { type: 'resource_link', uri: url, name: `picture ${index + 1}` }, entry: { type: 'link', mime_type: null, bytes: null, url } }
}
