import type { Failure } from '../dialect.ts'
import { classifyFailure } from '../failure.ts'

/** Matches refusals that concern the id of the route and not the request: another route may serve the same request. */
const routeWords = /on-demand throughput isn.t supported|model identifier is invalid|isn.t supported on this route|inference profile|access to the model/i

/**
 * Classifies a failure of Bedrock by the name of its exception, which is in a header. Null when the reply has no such name. The statuses of some
 * exceptions mislead: a full quota is a 400, and a broken model is a 424.
 */
export function bedrockFailure(status: number, headers: Parameters<typeof classifyFailure>[1], bodyText: string): Failure | null {
  const named = headers['x-amzn-errortype']
  if (typeof named !== 'string') return null
  const [name = ''] = named.split(':')
  switch (name.replace(/^.*#/, '')) {
    case 'ServiceQuotaExceededException':
      return { ...rateLimited(headers), status }
    case 'ModelErrorException':
    case 'ModelStreamErrorException':
    case 'ModelTimeoutException':
      return { kind: 'transient', status }
    case 'ResourceNotFoundException':
      return { kind: 'declined', status }
    case 'AccessDeniedException':
    case 'ValidationException':
      return routeWords.test(bodyText) ? { kind: 'declined', status } : classifyFailure(status, headers, bodyText)
    default:
      return classifyFailure(status, headers, bodyText)
  }
}

/** Returns the failure of a rate limit, with the time to wait. */
const rateLimited = (headers: Parameters<typeof classifyFailure>[1]): Failure => classifyFailure(429, headers, '')
