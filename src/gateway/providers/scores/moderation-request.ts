import { callHeaders } from '../call-headers.ts'
import type { UpstreamRequest } from '../dialect.ts'
import { jsonBody } from '../dialects/json-values.ts'
import type { ScoreTarget } from './rerank-styles.ts'

/** Returns the request to check a content. Its fields go on as they are, with the provider's own name of the model. */
export function moderationRequest(body: Readonly<Record<string, unknown>>, target: ScoreTarget): UpstreamRequest {
  const { provider, upstreamModel, credential } = target
  return {
    method: 'POST',
    url: `${provider.baseUrl}/moderations`,
    headers: { ...callHeaders(provider, credential), 'content-type': 'application/json', accept: 'application/json' },
    ...jsonBody({ ...body, model: upstreamModel }, target),
    dropped: [],
  }
}
