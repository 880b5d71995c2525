/** Prepares requests for models that think. */
import type { Model } from '../../catalog/model.ts'
import type { HubRequest } from '../../providers/dialect.ts'
import type { DialectId } from '../../providers/provider.ts'
import type { Attempt } from '../../routing/plan.ts'
import { checkEffort, nearestEffort } from '../../wire/chat/reasoning-effort.ts'
import { brHeader } from '../../wire/response-headers.ts'
import type { ParsedRequest } from '../kinds/request.ts'

/** A model may use up a limit below this number of tokens for one answer by thinking alone. The interface says "below 1024". */
const smallCapTokens = 1024

const noHeaders: Readonly<Record<string, string>> = Object.freeze({})

/** Returns the header that warns about a small token limit on a model that thinks. The limit itself is sent unchanged. */
export function capAdvisory({ maxTokens, answers, operation }: ParsedRequest, { reasoning }: Model): Readonly<Record<string, string>> {
  if (maxTokens === null || !reasoning || operation !== 'chat') return noHeaders
  const cap = Math.floor(maxTokens / answers)
  return cap < smallCapTokens ? { [brHeader.reasoningCapAdvisory]: String(cap) } : noHeaders
}

/**
 * Returns the request with the nearest `reasoning_effort` that the attempt's model knows. It returns the same object when nothing changes.
 * Throws `bad_request` for a level that no model knows.
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
  // Formats that count thinking in tokens express `none` and `minimal` in their own way, so their dialects handle these levels.
  const countsTokens = dialect === 'anthropic' || dialect === 'gemini'
  if (countsTokens && (effort === 'none' || effort === 'minimal')) return effort
  const wanted = effort === 'minimal' && dialect === 'openai-responses' ? 'low' : effort
  if (efforts.length === 0) return alwaysThinks && wanted === 'none' ? 'low' : wanted
  return nearestEffort(wanted, alwaysThinks ? efforts.filter(level => level !== 'none') : efforts)
}
