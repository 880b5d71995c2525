import { type Exchange, objectOrNull } from './exchange.ts'
import { refuseModel } from './models.ts'

/** The most documents of one search. A longer document counts as several. */
const documentsPerSearch = 100
const wordsPerDocument = 500

/**
 * Serves POST /v1/rerank in Cohere's format. The score of a document is the share of distinct words that it has in common with the query: words of both,
 * divided by words of either. It bills one search for each started hundred of documents.
 */
export async function cohereRerank(exchange: Exchange): Promise<void> {
  const body = await exchange.body()
  const { model, query, documents, top_n: topN } = body ?? {}
  if (typeof model !== 'string' || typeof query !== 'string' || !Array.isArray(documents) || documents.length === 0) return refuse(exchange)
  const texts = (documents as readonly unknown[]).map(document => (typeof document === 'string' ? document : objectOrNull(document)?.['text']))
  if (!texts.every(text => typeof text === 'string')) return refuse(exchange)
  if (refuseModel(exchange, model, ['sandbox-rerank'])) return
  const asked = wordsOf(query)
  const ranked = texts.map((text, index) => ({ index, relevance_score: overlap(asked, wordsOf(text)) }))
  ranked.sort((a, b) => b.relevance_score - a.relevance_score)
  const parts = texts.reduce((sum, text) => sum + Math.max(1, Math.ceil((text.match(/\S+/g)?.length ?? 0) / wordsPerDocument)), 0)
  exchange.json(200, {
    id: exchange.ids.uuidv7(exchange.clock.nowMs()),
    results: typeof topN === 'number' && topN >= 1 ? ranked.slice(0, topN) : ranked,
    meta: { api_version: { version: '2' }, billed_units: { search_units: Math.ceil(parts / documentsPerSearch) } },
  })
}

const wordsOf = (text: string): ReadonlySet<string> => new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [])

function overlap(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  let both = 0
  for (const word of a) if (b.has(word)) both++
  const either = a.size + b.size - both
  return either === 0 ? 0 : both / either
}

function refuse(exchange: Exchange): void {
  exchange.json(400, { message: 'invalid request: "model", "query" and a non-empty list of "documents" are required' })
}
