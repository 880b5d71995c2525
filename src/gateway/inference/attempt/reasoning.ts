/** What a request for a model that thinks needs beside the request itself. */
import type { Model } from '../../catalog/model.ts'
import type { HubRequest } from '../../providers/dialect.ts'
import type { DialectId } from '../../providers/provider.ts'
import type { Attempt } from '../../routing/plan.ts'
import { checkEffort, nearestEffort } from '../../wire/chat/reasoning-effort.ts'
import { brHeader } from '../../wire/response-headers.ts'
import type { ParsedRequest } from '../kinds/request.ts'

/** A ceiling of one answer below this may be used up by thinking alone. Interface: "below 1024". */
const smallCapTokens = 1024

const noHeaders: Readonly<Record<string, string>> = Object.freeze({})

/** The header that tells of a small ceiling on a model that thinks. The ceiling itself goes on as it was given. */
export function capAdvisory({ maxTokens, answers, operation }: ParsedRequest, { reasoning }: Model): Readonly<Record<string, string>> {
  if (maxTokens === null || !reasoning || operation !== 'chat') return noHeaders
  const cap = Math.floor(maxTokens / answers)
  return cap < smallCapTokens ? { [brHeader.reasoningCapAdvisory]: String(cap) } : noHeaders
}

/**
 * The request with a `reasoning_effort` that the attempt's model knows: the nearest of its levels. The very same object when nothing
 * changes. Throws `bad_request` for a level that no model knows.
 */
export function withKnownEffort(hub: HubRequest, { route, model }: Attempt): HubRequest {
  const { body } = hub
  const given = body['reasoning_effort']
  if (given === undefined || given === null) return hub
  checkEffort(given)
  const effort = knownEffort(String(given), route.dialect, model)
  return effort === given ? hub : { ...hub, body: { ...body, reasoning_effort: effort }, bytes: null }
}

function knownEffort(effort: string, dialect: DialectId, { efforts, alwaysThinks }: Model): string {
  // Formats that count thinking in tokens have a way of their own to say none and least, which their dialects know.
  const countsTokens = dialect === 'anthropic' || dialect === 'gemini'
  if (countsTokens && (effort === 'none' || effort === 'minimal')) return effort
  const wanted = effort === 'minimal' && dialect === 'openai-responses' ? 'low' : effort
  if (efforts.length === 0) return alwaysThinks && wanted === 'none' ? 'low' : wanted
  return nearestEffort(wanted, alwaysThinks ? efforts.filter(level => level !== 'none') : efforts)
}
