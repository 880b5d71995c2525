/** Attempts of calls that score texts: rankings of documents, and moderations. */
import { moderationFields, rerankFields } from '../../providers/format-fields.ts'
import { moderationRequest } from '../../providers/scores/moderation-request.ts'
import { countsOf, type Ranking, rankingOf, rerankRequest } from '../../providers/scores/rerank-styles.ts'
import type { Attempt } from '../../routing/plan.ts'
import { plainUsage, type TokenUsage, usageOfEmbeddings } from '../../wire/usage.ts'
import { without } from '../attempt/withheld.ts'
import { believed, usageBoundsOf } from '../charge/believed.ts'
import type { Performer } from '../kinds/kind.ts'
import { RerankRequest } from '../kinds/media/score-requests.ts'
import { jsonInTurns } from './json-reply.ts'
import { failedScore, scoreAnswer, scoreCall, withheldNames } from './score-call.ts'

/** Makes one attempt of a ranking. The reply has Cohere's form, whatever the vendor's is. */
export const performRerank: Performer = async (attempt, context) => {
  const { request, deps } = context
  if (!(request instanceof RerankRequest)) throw new TypeError('not a request to rank')
  const { call } = request.ranked
  const withheld = withheldNames(call.others, rerankFields, attempt)
  const sent = withheld.length === 0 ? call : { ...call, others: without(call.others, withheld) }
  const read = await scoreCall(attempt, context, withheld, target => rerankRequest(sent, target))
  if (read.kind !== 'read') return read
  const ranking = rankingOf(read.value, attempt.route.provider, call.documents.length)
  if (ranking === null) {
    const failed = failedScore(attempt, read.reply.status, `answered ${read.reply.status} with no ranking of the documents`)
    // The vendor bills it, so it is charged when no other route answers.
    return { ...failed, made: usageOf(countsOf(read.value), request, attempt).usage }
  }
  const { usage, estimated } = usageOf(ranking, request, attempt)
  const id = typeof read.value['id'] === 'string' ? read.value['id'] : deps.ids.uuidv7(deps.clock.nowMs())
  const shown = cohereReply(id, ranking, request, attempt, usage)
  return scoreAnswer(attempt, read, await jsonInTurns(shown, request.ranked.returnsDocuments ? sizeOf(request) : read.bytes.length, context), usage, estimated)
}

/** Returns about the bytes of a reply that contains the documents. */
const sizeOf = ({ ranked: { call } }: RerankRequest): number => call.documents.reduce((bytes, text) => bytes + 3 * text.length, 0)

/**
 * Returns the usage, and whether the part of it that costs money is the gateway's estimate. A count of the vendor that the documents cannot explain is not
 * believed: more searches than their parts, or far more tokens than they have.
 */
function usageOf(
  { searches, tokens }: Pick<Ranking, 'searches' | 'tokens'>,
  request: RerankRequest,
  attempt: Attempt,
): { readonly usage: TokenUsage; readonly estimated: boolean } {
  const { media, promptTokens, ranked } = request
  const isBySearch = attempt.route.price.uinrPerMillionSearches !== undefined
  // A route that bills searches may not count tokens at all.
  const counted = believed(plainUsage(tokens ?? (isBySearch ? 0 : promptTokens), 0), usageBoundsOf(request, attempt, false), 0)
  const isTooMany = searches !== null && searches > ranked.searchesMost
  const billed = searches === null || isTooMany ? media.searches : searches
  const usage = { ...counted, media: { ...media, searches: billed } }
  if (isTooMany) return { usage: { ...usage, doubt: 'input_above' }, estimated: true }
  return { usage, estimated: (isBySearch ? searches : tokens) === null }
}

/** Returns the reply in Cohere's form. The documents are those of the request: no vendor has to send them back. */
function cohereReply(
  id: string,
  { results, tokens }: Ranking,
  { ranked: { call, given, returnsDocuments } }: RerankRequest,
  { route }: Attempt,
  { promptTokens, media }: TokenUsage,
): object {
  const shown = call.topN === null ? results : results.slice(0, call.topN)
  const bySearch = route.price.uinrPerMillionSearches !== undefined
  return {
    id,
    model: route.modelId,
    results: shown.map(({ index, score }) => ({
      index,
      relevance_score: score,
      ...(returnsDocuments ? { document: documentOf(given[index]) } : {}),
    })),
    meta: {
      api_version: { version: '2' },
      billed_units: bySearch ? { search_units: media?.searches ?? 0 } : { input_tokens: promptTokens },
      ...(tokens === null ? {} : { tokens: { input_tokens: promptTokens } }),
    },
  }
}

const documentOf = (given: unknown): unknown => (typeof given === 'string' ? { text: given } : given)

/**
 * Makes one attempt of a moderation. The reply is the vendor's own, with its own categories; only the name of the model is that of the catalog. A vendor
 * that reports no tokens is charged by the estimate, which costs nothing where the price is 0.
 */
export const performModeration: Performer = async (attempt, context) => {
  const { request } = context
  const { body } = request.native
  const withheld = withheldNames(body, moderationFields, attempt)
  const sent = withheld.length === 0 ? body : without(body, withheld)
  const read = await scoreCall(attempt, context, withheld, target => moderationRequest(sent, target))
  if (read.kind !== 'read') return read
  const { value, bytes, reply } = read
  const { results } = value
  if (!Array.isArray(results) || results.length === 0) return failedScore(attempt, reply.status, `answered ${reply.status} with no results`)
  const told = usageOfEmbeddings(value['usage'])
  const usage = believed(told ?? plainUsage(request.promptTokens, 0), usageBoundsOf(request, attempt, false), 0)
  const { modelId } = attempt.route
  const shown = value['model'] === modelId ? bytes : await jsonInTurns({ ...value, model: modelId }, bytes.length, context)
  return scoreAnswer(attempt, read, shown, usage, told === null)
}
