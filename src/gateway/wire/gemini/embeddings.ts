/** Translates embeddings of Google's API to requests in the format of OpenAI, and their replies back. */
import { fail } from '../../../platform/errors.ts'
import { isObject, type JsonObject, objectsOf } from '../../../platform/values/json.ts'
import { camelOf, fieldOf, objectAt, partsIn } from './fields.ts'

/** The most requests in one batch. It is Google's own limit, and bounds the numbers of a reply that are read here. */
const batchMax = 100

/** A request for embeddings in the format of OpenAI, and the names of the fields that this format does not have. */
export interface TranslatedEmbeddings {
  readonly body: JsonObject
  readonly dropped: readonly string[]
}

const carried: ReadonlySet<string> = new Set(['model', 'content', 'outputDimensionality', 'embedContentConfig'])

/** Translates the request for one embedding. Throws `bad_request` that names the field. */
export function embedRequest(model: string, request: JsonObject): TranslatedEmbeddings {
  return translated(model, [request], at => at)
}

/** Translates the request for several embeddings. All must have the same size. Throws `bad_request` that names the field. */
export function batchEmbedRequest(model: string, { requests }: JsonObject): TranslatedEmbeddings {
  if (!Array.isArray(requests) || requests.length === 0 || requests.length > batchMax)
    throw fail('bad_request', { message: `"requests" must be an array of 1 to ${batchMax} requests.` })
  const list = requests.map((each: unknown, index) => {
    if (!isObject(each)) throw fail('bad_request', { message: `"requests[${index}]" must be an object.` })
    return each
  })
  return translated(model, list, (at, index) => `requests[${index}].${at}`)
}

function translated(model: string, requests: readonly JsonObject[], place: (at: string, index: number) => string): TranslatedEmbeddings {
  const dropped = new Set<string>()
  const sizes = new Set<unknown>()
  const input = requests.map((request, index) => {
    for (const name of Object.keys(request)) if (!carried.has(camelOf(name)) && request[name] !== null) dropped.add(camelOf(name))
    const config = objectAt(request, 'embedContentConfig')
    for (const name of Object.keys(config)) if (camelOf(name) !== 'outputDimensionality') dropped.add(`embedContentConfig.${camelOf(name)}`)
    sizes.add(fieldOf(request, 'outputDimensionality') ?? fieldOf(config, 'outputDimensionality') ?? null)
    return textsOf(request['content'], place('content', index))
  })
  const [size] = sizes
  if (sizes.size > 1) throw fail('bad_request', { message: '"outputDimensionality" must be the same in all requests.' })
  return { body: { model, input, ...(size === null ? {} : { dimensions: size }) }, dropped: [...dropped] }
}

function textsOf(content: unknown, at: string): string {
  const parts = partsIn(content)
  if (parts.length === 0) throw fail('bad_request', { message: `"${at}" must be a content with parts.` })
  return parts
    .map((part, index) => {
      if (typeof part['text'] !== 'string') throw fail('bad_request', { message: `"${at}.parts[${index}]" must be text: other content is not embedded here.` })
      return part['text']
    })
    .join('\n')
}

/** Returns the vectors of a reply in the format of OpenAI, in the order of the inputs. Throws `reply_not_translated` when there are not as many as inputs. */
function vectorsOf(reply: JsonObject, count: number): readonly unknown[] {
  const vectors: unknown[] = []
  objectsOf(reply['data']).forEach(({ index, embedding }, place) => {
    vectors[typeof index === 'number' && index >= 0 && index < count ? index : place] = embedding
  })
  if (vectors.length !== count || vectors.some(vector => !Array.isArray(vector)))
    throw fail('reply_not_translated', { message: 'The provider has not answered with one list of numbers for each text.' })
  return vectors
}

/** Returns the reply to one request, or to several. */
export function embedReply(reply: JsonObject, count: number, isBatch: boolean): JsonObject {
  const embeddings = vectorsOf(reply, count).map(values => ({ values }))
  const tokens = objectAt(reply, 'usage')['prompt_tokens']
  const usage = typeof tokens === 'number' ? { usageMetadata: { promptTokenCount: tokens } } : {}
  return isBatch ? { embeddings, ...usage } : { embedding: embeddings[0], ...usage }
}
