import { z } from 'zod'
import { pieceTurn } from '../../gateway/wire/json/json-body.ts'
import { operatorBounds } from '../../gateway/wire/json/json-bounds.ts'
import { brHeader } from '../../gateway/wire/response-headers.ts'
import { Reply } from '../../platform/endpoint.ts'
import { fail, type GatewayError } from '../../platform/errors.ts'
import type { McpRows } from '../mcp-rows.ts'
import { counted, line, rupees } from './toolbox/text-lines.ts'
import { rowTool, type Tool, type ToolResult } from './toolbox/tool.ts'
import { providerAnswerInTurns } from './toolbox/tool-errors.ts'

const inputsMax = 64
/** Maximum size of a reply that is read. 64 vectors of 4,096 numbers take less. */
const replyMaxBytes = 8 * 1024 * 1024
/** Maximum number of numbers of all vectors together: 64 vectors of 4,096 numbers. */
const numbersMax = 262_144
/** Maximum number of numbers of an answer with whole vectors. They are written in one turn of the event loop. */
const fullNumbersMax = 131_072
/** A comparison of more numbers takes turns of the event loop. */
const lightNumbers = 16_384
/** The bounds of a reply. A vector and each of its numbers are values, and the rest has a few for each vector. */
const replyBounds = { ...operatorBounds, valuesMax: numbersMax + 1024 }
/** How many numbers of each vector a shortened answer contains. */
const previewNumbers = 8
/** Maximum number of characters of an input that the text of the answer repeats. */
const quotedChars = 40

/** One native loop, because a schema takes many times longer for each number. */
function isVector(value: unknown): boolean {
  return Array.isArray(value) && value.every(Number.isFinite)
}

const replyShape = z.looseObject({
  model: z.string().nullish(),
  data: z.array(z.looseObject({ index: z.number().int().optional(), embedding: z.custom<readonly number[]>(isVector) })).min(1),
  usage: z.looseObject({ prompt_tokens: z.number(), total_tokens: z.number() }).nullish(),
})

const outputSchema = z.object({
  model: z.string(),
  provider: z.string().nullable(),
  dims: z.number().int().describe('Numbers of each whole vector.'),
  vectors: z.array(z.array(z.number())).describe('One for each input, in order; cut to the first numbers unless vectors is "full".'),
  truncated: z.boolean().describe('true: vectors holds only the first numbers of each.'),
  similarity: z.array(z.array(z.number())).optional().describe('Cosine of each input with each other one; for two inputs and more.'),
  usage: z.object({ prompt_tokens: z.number(), total_tokens: z.number() }).nullable().describe('null: the provider does not say.'),
  cost_inr: z.number().nullable(),
})

/**
 * The tool embed turns texts into vectors and compares the texts. It returns only the beginning of each vector, unless the request asks for whole
 * vectors.
 */
export function embedTool(row: McpRows['embeddings']): Tool {
  return rowTool({
    name: 'embed',
    toolset: 'core',
    title: 'Embed texts',
    description:
      'Turn up to 64 texts into vectors and see how alike they are (cosine). Costs money. Vectors come shortened unless vectors is "full", because thousands of numbers fill a conversation.',
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true },
    row,
    inputSchema: z.object({
      input: z.array(z.string().min(1)).min(1).max(inputsMax).describe(`1 to ${inputsMax} texts.`),
      model: z.string().min(1).max(256).describe('Id of an embedding model; models_list with kind "embedding" lists them.'),
      dimensions: z.number().int().min(1).max(100_000).optional().describe('Shorter vectors, where the model can.'),
      vectors: z.enum(['short', 'full']).default('short').describe('full: every number of every vector.'),
      provider: z.string().min(1).optional().describe('Pin one provider id.'),
      data_policy: z.enum(['india_only']).optional().describe('india_only: nothing leaves India.'),
    }),
    outputSchema,
    toInput: ({ vectors: _vectors, ...fields }) => ({ body: Buffer.from(JSON.stringify({ ...fields, encoding_format: 'float' })) }),
    toResult: (value, args) => resultOf(value, args.input, args.model, args.vectors === 'full'),
  })
}

async function resultOf(value: unknown, inputs: readonly string[], asked: string, isFull: boolean): Promise<ToolResult> {
  if (value instanceof Reply && value.body.kind === 'bytes' && value.body.bytes.byteLength > replyMaxBytes)
    throw unusable(`more than ${replyMaxBytes} bytes. Ask for fewer texts or dimensions`)
  const { model: said, data, usage } = await providerAnswerInTurns(replyShape, value, replyBounds)
  // Every vector is compared with every other one, so a reply with more or fewer vectors than requested is refused.
  if (data.length !== inputs.length) throw unusable(`${counted(data.length, 'vector')} for ${counted(inputs.length, 'text')}`)
  const model = said ?? asked
  const headers = value instanceof Reply ? value.headers : {}
  const vectors = data.toSorted((a, b) => (a.index ?? 0) - (b.index ?? 0)).map(({ embedding }) => embedding)
  const dims = vectors[0]?.length ?? 0
  if (vectors.some(({ length }) => length !== dims)) throw unusable('vectors of different lengths')
  const numbers = dims * vectors.length
  if (numbers > numbersMax) throw unusable(`more than ${numbersMax} numbers. Ask for fewer texts or dimensions`)
  if (isFull && numbers > fullNumbersMax) throw unusable(`more than ${fullNumbersMax} numbers. Ask for fewer texts or dimensions, or for short vectors`)
  const truncated = !isFull && dims > previewNumbers
  const provider = headers[brHeader.provider] ?? null
  const cost = headers[brHeader.costInr]
  const similarity = vectors.length > 1 ? await similarityOf(vectors, numbers > lightNumbers) : null
  const head = line(
    `${counted(vectors.length, 'vector')} of ${counted(dims, 'dimension')}`,
    provider === null ? model : `${model} at ${provider}`,
    usage && counted(usage.prompt_tokens, 'token'),
    cost !== undefined && rupees(Number(cost)),
  )
  return {
    text: [head, ...(similarity === null ? [] : similarity.map((row, index) => nearestLine(row, index, inputs)))].join('\n'),
    structured: {
      model,
      provider,
      dims,
      vectors: truncated ? vectors.map(vector => vector.slice(0, previewNumbers)) : vectors,
      truncated,
      ...(similarity === null ? {} : { similarity }),
      usage: usage ? { prompt_tokens: usage.prompt_tokens, total_tokens: usage.total_tokens } : null,
      cost_inr: cost === undefined ? null : Number(cost),
    },
  }
}

const unusable = (what: string): GatewayError => fail('all_routes_failed', { message: `The provider answered with ${what}.` })

/** Returns cosines with three digits. A vector of zeros has the cosine 0. Each pair is calculated once. `inTurns`: each vector takes a turn of the event loop. */
async function similarityOf(vectors: readonly (readonly number[])[], inTurns: boolean): Promise<number[][]> {
  const lengths = vectors.map(vector => Math.sqrt(dot(vector, vector)))
  const half: number[][] = []
  for (const [i, a] of vectors.entries()) {
    if (inTurns) await pieceTurn()
    half.push(
      vectors.slice(0, i + 1).map((b, j) => {
        const scale = (lengths[i] ?? 0) * (lengths[j] ?? 0)
        return scale === 0 ? 0 : Math.round((dot(a, b) / scale) * 1000) / 1000
      }),
    )
  }
  return vectors.map((_, i) => vectors.map((__, j) => half[Math.max(i, j)]?.[Math.min(i, j)] ?? 0))
}

function dot(a: readonly number[], b: readonly number[]): number {
  let sum = 0
  for (let index = 0; index < a.length; index++) sum += (a[index] ?? 0) * (b[index] ?? 0)
  return sum
}

/** Returns a line about the input that is nearest to this one. */
function nearestLine(row: readonly number[], index: number, inputs: readonly string[]): string {
  const others = row.map((cosine, other) => ({ cosine, other })).filter(({ other }) => other !== index)
  const nearest = others.reduce((best, next) => (next.cosine > best.cosine ? next : best))
  return `${index + 1} ${quoted(inputs[index])}: nearest ${nearest.other + 1} ${quoted(inputs[nearest.other])} at ${nearest.cosine}`
}

function quoted(text = ''): string {
  const chars = [...text.replace(/\s+/g, ' ')]
  return `"${chars.length > quotedChars ? `${chars.slice(0, quotedChars).join('')}…` : chars.join('')}"`
}
