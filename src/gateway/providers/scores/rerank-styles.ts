/**
 * How vendors are asked to rank documents, and how their replies are read. The functions are pure. A call has Cohere's fields, and every style reads
 * and writes those of its vendor.
 */
import { isObject } from '../../../platform/values/json.ts'
import { tokenCount } from '../../wire/usage.ts'
import { callHeaders } from '../call-headers.ts'
import type { Target, UpstreamRequest } from '../dialect.ts'
import { jsonBody } from '../dialects/json-values.ts'
import type { Provider, RerankStyleId } from '../provider.ts'

/** The provider, model and credential of one attempt that scores texts. */
export type ScoreTarget = Pick<Target, 'provider' | 'upstreamModel' | 'credential' | 'writesLater'>

/** A query, and the documents to rank by it. */
export interface RerankCall {
  readonly query: string
  readonly documents: readonly string[]
  /** The number of results that the caller wants. Null means all. */
  readonly topN: number | null
  /** The other fields of the request that may be sent. */
  readonly others: Readonly<Record<string, unknown>>
}

/** One document by its place in the request, and its score. */
export interface RankedDocument {
  readonly index: number
  readonly score: number
}

/** A reply. The counts are null where the vendor does not report them. */
export interface Ranking {
  readonly results: readonly RankedDocument[]
  /** The searches that the vendor bills. */
  readonly searches: number | null
  readonly tokens: number | null
}

type Json = Readonly<Record<string, unknown>>

interface RerankStyle {
  /** Returns the fields of the request beside the query. */
  fields(call: RerankCall, upstreamModel: string): Json
  /** The fields of Cohere that this vendor does not have. They are not sent, and the reply names them. */
  readonly unknown: readonly string[]
  /** The member of a reply that lists the results, and the member of a result that is its score. */
  readonly list: string
  readonly score: string
}

const cohereOnly = ['max_tokens_per_doc', 'priority'] as const

const styles: Readonly<Record<RerankStyleId, RerankStyle>> = {
  cohere: {
    fields: ({ documents, topN }, model) => ({ model, documents, ...(topN === null ? {} : { top_n: topN }) }),
    unknown: [],
    list: 'results',
    score: 'relevance_score',
  },
  jina: {
    fields: ({ documents, topN }, model) => ({ model, documents, ...(topN === null ? {} : { top_n: topN }), return_documents: false }),
    unknown: cohereOnly,
    list: 'results',
    score: 'relevance_score',
  },
  voyage: {
    fields: ({ documents, topN }, model) => ({ model, documents, ...(topN === null ? {} : { top_k: topN }) }),
    unknown: cohereOnly,
    list: 'data',
    score: 'relevance_score',
  },
  // It serves one model, and always ranks all texts. Its reply is a list, which the reader puts into the member `results`.
  tei: { fields: ({ documents }) => ({ texts: documents, truncate: true }), unknown: cohereOnly, list: 'results', score: 'score' },
}

const styleOf = ({ rerankStyle }: Provider): RerankStyle => styles[rerankStyle ?? 'cohere']

/** Returns the request. The body is always written again, so that no member has two values. */
export function rerankRequest(call: RerankCall, target: ScoreTarget): UpstreamRequest {
  const { provider, upstreamModel, credential } = target
  const style = styleOf(provider)
  const dropped = style.unknown.filter(name => call.others[name] !== undefined && call.others[name] !== null)
  const others = dropped.length === 0 ? call.others : Object.fromEntries(Object.entries(call.others).filter(([name]) => !dropped.includes(name)))
  return {
    method: 'POST',
    url: new URL(provider.rerankPath ?? 'rerank', `${provider.baseUrl}/`).href,
    headers: { ...callHeaders(provider, credential), 'content-type': 'application/json', accept: 'application/json' },
    ...jsonBody({ ...others, query: call.query, ...style.fields(call, upstreamModel) }, target),
    dropped,
  }
}

/**
 * Reads a reply for `documents` documents, best first. Returns null when it is no ranking: a place is missing, named twice or outside the request, or
 * a score is no number.
 */
export function rankingOf(reply: Json, provider: Provider, documents: number): Ranking | null {
  const { list, score } = styleOf(provider)
  const given = reply[list]
  if (!Array.isArray(given) || given.length === 0 || given.length > documents) return null
  const seen = new Set<number>()
  const results: RankedDocument[] = []
  for (const item of given as readonly unknown[]) {
    const index = isObject(item) ? item['index'] : undefined
    const value = isObject(item) ? item[score] : undefined
    if (typeof index !== 'number' || !Number.isInteger(index) || index < 0 || index >= documents || seen.has(index)) return null
    if (typeof value !== 'number' || !Number.isFinite(value)) return null
    seen.add(index)
    results.push({ index, score: value })
  }
  results.sort((a, b) => b.score - a.score)
  return { results, ...countsOf(reply) }
}

/** Returns the billed searches of Cohere's reply, and the tokens of any reply. */
export function countsOf({ meta, usage }: Json): Pick<Ranking, 'searches' | 'tokens'> {
  const billed = isObject(meta) && isObject(meta['billed_units']) ? meta['billed_units'] : {}
  const read = isObject(meta) && isObject(meta['tokens']) ? meta['tokens'] : {}
  const told = isObject(usage) ? usage : {}
  const searches = tokenCount(billed['search_units'])
  return { searches, tokens: tokenCount(told['total_tokens']) ?? tokenCount(billed['input_tokens']) ?? tokenCount(read['input_tokens']) }
}
