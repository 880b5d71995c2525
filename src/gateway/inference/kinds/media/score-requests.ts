/** Requests of calls that score texts: rankings in the fields of Cohere's rerank API, and moderations in those of OpenAI's. */
import { fail } from '../../../../platform/errors.ts'
import { isObject } from '../../../../platform/values/json.ts'
import type { RerankCall } from '../../../providers/scores/rerank-styles.ts'
import { modelOf } from '../../../wire/chat/chat.ts'
import { parseRouterFields, type RouterFields } from '../../../wire/chat/router-fields.ts'
import { unseenDigitsOf } from '../../../wire/json/json-body.ts'
import { type PromptMedia, PromptSize } from '../../../wire/prompt-size.ts'
import { accepting } from '../accepting.ts'
import { parseObject } from '../parse-object.ts'
import { MediaRequest } from './media-request.ts'

/** The most documents of one call: what the vendors take. */
const documentsMax = 1000
/** The most documents that one search covers. Vendors that bill searches bill one for each started hundred. */
const documentsPerSearch = 100
/** The least bytes of a part of a long document that a vendor may count as a document of its own. */
const partBytesLeast = 256
const maxTokensPerDocMost = 1_000_000
const rankedFields: ReadonlySet<string> = new Set(['model', 'query', 'documents', 'top_n', 'return_documents'])

type Body = Readonly<Record<string, unknown>>

/** The checked fields of a request to rank. */
interface RankedBody {
  readonly call: RerankCall
  /** The documents as the caller gave them. */
  readonly given: readonly unknown[]
  readonly returnsDocuments: boolean
  /** The tokens of all pairs of the query and a document: vendors read the query again for each document. */
  readonly promptTokens: number
  /** The tokens of the longest pair, which is what a context window must hold. */
  readonly pairTokens: number
  readonly searchesMost: number
}

/** A request to rank documents. It counts searches and tokens, and the price of the route says which of them cost money. */
export class RerankRequest extends MediaRequest {
  readonly stream = false
  readonly ranked: RankedBody
  readonly media: { readonly images: 0; readonly audioSeconds: 0; readonly characters: 0; readonly searches: number }
  /** A vendor may count a long document as several. */
  readonly mediaMost: RerankRequest['media']
  /** A vendor may cut long documents off, so nothing is too few. */
  readonly promptUnreadTokens: number
  /** All but the longest pair: a context window is compared with that alone. */
  readonly promptDigitTokens: number
  readonly accepts = accepting('rerank')

  constructor(modelId: string, fields: RouterFields, body: Body, ranked: RankedBody) {
    super(modelId, fields, body, ranked.promptTokens)
    this.ranked = ranked
    this.media = { images: 0, audioSeconds: 0, characters: 0, searches: Math.ceil(ranked.call.documents.length / documentsPerSearch) }
    this.mediaMost = { ...this.media, searches: ranked.searchesMost }
    this.promptUnreadTokens = ranked.promptTokens
    this.promptDigitTokens = ranked.promptTokens - ranked.pairTokens
  }
}

/** Parses the body of a request to rank documents. Throws `bad_request` and `bad_steps`. */
export function rerankRequestOf(bytes: Buffer): RerankRequest {
  const { fields, stripped } = parseRouterFields(parseObject(bytes))
  return new RerankRequest(modelOf(stripped), fields, stripped, parseRerank(stripped))
}

/** Checks a request without router fields. Throws `bad_request` that names the field and never repeats a text. */
function parseRerank(body: Body): RankedBody {
  const { query, documents: given, rank_fields: rankFields, return_documents: returns } = body
  if (typeof query !== 'string' || query.trim() === '') throw bad('"query" must be a non-empty string.')
  if (!Array.isArray(given) || given.length === 0 || given.length > documentsMax) throw bad(`"documents" must be an array of 1 to ${documentsMax} documents.`)
  if (isGiven(rankFields)) throw bad('"rank_fields" is not supported. Send the text to rank as "text" of each document.')
  if (isGiven(returns) && typeof returns !== 'boolean') throw bad('"return_documents" must be true or false.')
  wholeOf(body, 'max_tokens_per_doc', maxTokensPerDocMost)
  const documents = given.map(textOfDocument)
  const others = Object.fromEntries(Object.entries(body).filter(([name]) => !rankedFields.has(name)))
  const topN = wholeOf(body, 'top_n', Number.MAX_SAFE_INTEGER)
  const call = { query, documents, topN: topN === null ? null : Math.min(topN, documents.length), others }
  return { call, given, returnsDocuments: returns === true, ...sizeOfPairs(query, documents, body) }
}

function textOfDocument(document: unknown, index: number): string {
  const text = isObject(document) ? document['text'] : document
  if (typeof text !== 'string') throw bad(`"documents[${index}]" must be a string or an object with a string "text".`)
  return text
}

function sizeOfPairs(query: string, documents: readonly string[], body: Body): Pick<RankedBody, 'promptTokens' | 'pairTokens' | 'searchesMost'> {
  const queryTokens = tokensOf(query)
  const settings = new PromptSize(0)
  settings.settings(body, rankedFields)
  let [tokens, longest, bytes] = [settings.estimate, 0, 0]
  for (const document of documents) {
    const ofDocument = tokensOf(document)
    tokens += queryTokens + ofDocument
    bytes += Buffer.byteLength(document)
    if (ofDocument > longest) longest = ofDocument
  }
  const parts = documents.length + Math.ceil(bytes / partBytesLeast)
  return { promptTokens: tokens, pairTokens: queryTokens + longest, searchesMost: Math.ceil(parts / documentsPerSearch) }
}

function tokensOf(text: string): number {
  const size = new PromptSize(0)
  size.text(text)
  return size.estimate
}

/** Returns a whole number from 1 on. Null when it is left out. */
function wholeOf(body: Body, name: string, most: number): number | null {
  const value = body[name]
  if (!isGiven(value)) return null
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value > most) throw bad(`"${name}" must be a whole number from 1 on.`)
  return value
}

/** The model that serves a request which names none. */
const defaultModel = 'omni-moderation-latest'
/** The most texts or parts of one call. */
const moderatedMax = 2048
const moderatedFields: ReadonlySet<string> = new Set(['model', 'input'])

/** A request to check content. It counts tokens, which most vendors do not charge. */
export class ModerationRequest extends MediaRequest {
  readonly stream = false
  readonly media = { images: 0, audioSeconds: 0, characters: 0 } as const
  readonly promptMedia: PromptMedia | undefined
  readonly promptUnreadTokens: number
  readonly promptDigitTokens: number
  readonly accepts = accepting('moderation')

  constructor(modelId: string, fields: RouterFields, body: Body, size: PromptSize) {
    super(modelId, fields, body, size.estimate)
    this.promptMedia = size.media
    this.promptUnreadTokens = size.unreadTokens
    this.promptDigitTokens = size.digitTokens
  }
}

/** Parses the body of a request to check content. Throws `bad_request` and `bad_steps`. */
export function moderationRequestOf(bytes: Buffer): ModerationRequest {
  const { fields, stripped } = parseRouterFields(parseObject(bytes))
  const size = sizeOfInput(stripped, unseenDigitsOf(bytes))
  return new ModerationRequest(isGiven(stripped['model']) ? modelOf(stripped) : defaultModel, fields, stripped, size)
}

/** Checks a request without router fields, and measures it. Throws `bad_request` that names the field and never repeats a text. */
function sizeOfInput(body: Body, digits: number): PromptSize {
  const { input } = body
  const size = new PromptSize(0)
  size.settings(body, moderatedFields)
  size.digits(digits)
  if (typeof input === 'string') {
    size.text(input)
    return size
  }
  if (!Array.isArray(input) || input.length === 0 || input.length > moderatedMax)
    throw bad(`"input" must be a string, or an array of 1 to ${moderatedMax} strings or parts.`)
  const isTexts = typeof input[0] === 'string'
  for (const [index, item] of (input as readonly unknown[]).entries()) {
    if (isTexts && typeof item === 'string') size.text(item)
    else if (isTexts || !addPart(size, item)) throw bad(`"input[${index}]" must be ${isTexts ? 'a string, like the first' : expectedPart}.`)
  }
  return size
}

const expectedPart = 'a string, or a part of type "text" with a "text" or of type "image_url" with an "image_url" that has a "url"'

/** Adds a part. Returns false, and adds nothing, when it is none. */
function addPart(size: PromptSize, part: unknown): boolean {
  if (!isObject(part)) return false
  const { type, text, image_url: image } = part
  if (type === 'text' && typeof text === 'string') {
    size.text(text)
    return true
  }
  if (type !== 'image_url' || !isObject(image) || typeof image['url'] !== 'string') return false
  size.image(image['url'])
  return true
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== null
const bad = (message: string): Error => fail('bad_request', { message })
