/**
 * Adds up the events of one flush in memory before the sums are written to the tables. Every call passes through here, so one event costs one look-up
 * and a few additions of numbers. Only money is added as bigint, because only money can exceed 2^53 in one flush.
 */
import { latencyBucket } from '../../../platform/observe/latency-buckets.ts'
import { istHour } from '../../../platform/values/ist-time.ts'
import type { BoundedNames } from '../events/bounded-names.ts'
import { istDays, modelText, tokensOf, wholeMs } from '../events/columns.ts'
import { cacheProviderId, type UsageEvent } from '../events/record.ts'

/** The finest grouping. Every table of an organisation groups by some of these fields. A missing value is 0 or ''. */
export interface Facts {
  readonly org_id: number
  readonly day: string
  /** The hour of the IST day. */
  readonly hour: number
  readonly user_id: number
  readonly workspace_id: number
  readonly key_id: number
  readonly agent_id: number
  readonly agent_label: string
  readonly model: string
  readonly provider: string
  readonly residency: string
  readonly byok: boolean
}

/** Sums of one row in an organisation's tables. */
export interface Rollup {
  requests: number
  errors: number
  prompt_tokens: number
  completion_tokens: number
  cached_tokens: number
  cache_write_tokens: number
  value_uinr: bigint
  cost_uinr: bigint
}

/** Sums of one row over all organisations. */
export interface ModelRollup {
  requests: number
  tokens: number
  succeeded: number
  failed: number
  written_tokens: number
  written_ms: number
}

/** Events with the same facts. */
export interface Group {
  readonly facts: Facts
  readonly sums: Rollup
  /** Sums of the model over all organisations. Null for an organisation's own server and for a tool, because neither may change the public figures of a model. */
  readonly model: ModelRollup | null
  /** Number of served calls by latency bucket, on own servers too. */
  readonly latencies: Map<number, number>
}

/** Groups the events of one flush, at most a few thousand. */
export function groupsOf(events: readonly UsageEvent[], labelOf: BoundedNames, modelOf: BoundedNames): readonly Group[] {
  const groups = new Map<string, Group>()
  const dayOf = istDays()
  for (const event of events) {
    const [day, hour] = [dayOf(event.atMs), istHour(event.atMs)]
    // The label is dropped for a call with a registered agent, because it adds no information.
    const label = event.agentId === null && event.agentLabel !== null ? labelOf(event.orgId, day, event.agentLabel) : ''
    const model = modelOf(event.orgId, day, modelText(event.model))
    // Providers and labels contain no U+0000, and `modelText` removes it from model ids. This text therefore identifies one group.
    const text = `${event.orgId}\u0000${day}\u0000${hour}\u0000${event.userId}\u0000${event.workspaceId}\u0000${event.keyId}\u0000${event.agentId}\u0000${label}\u0000${model}\u0000${event.provider}\u0000${event.residency}\u0000${event.byok}`
    let group = groups.get(text)
    if (group === undefined) {
      group = newGroup(event, { day, hour, label, model })
      groups.set(text, group)
    }
    addEvent(group, event)
  }
  return [...groups.values()]
}

interface Names {
  readonly day: string
  readonly hour: number
  readonly label: string
  readonly model: string
}

function newGroup(event: UsageEvent, { day, hour, label, model }: Names): Group {
  const { orgId, userId, workspaceId, keyId, agentId, provider, residency, byok, kind } = event
  return {
    facts: {
      org_id: orgId,
      day,
      hour,
      user_id: userId ?? 0,
      workspace_id: workspaceId ?? 0,
      key_id: keyId ?? 0,
      agent_id: agentId ?? 0,
      agent_label: label,
      model,
      provider,
      residency,
      byok,
    },
    sums: emptyRollup(),
    model: provider.startsWith('byoe:') || provider === cacheProviderId || kind === 'tool' ? null : emptyModelRollup(),
    latencies: new Map(),
  }
}

export const emptyRollup = (): Rollup => ({
  requests: 0,
  errors: 0,
  prompt_tokens: 0,
  completion_tokens: 0,
  cached_tokens: 0,
  cache_write_tokens: 0,
  value_uinr: 0n,
  cost_uinr: 0n,
})
export const emptyModelRollup = (): ModelRollup => ({ requests: 0, tokens: 0, succeeded: 0, failed: 0, written_tokens: 0, written_ms: 0 })

function addEvent({ sums, model, latencies }: Group, event: UsageEvent): void {
  const { outcome, status } = event
  const [prompt, completion] = [tokensOf(event.promptTokens), tokensOf(event.completionTokens)]
  sums.requests++
  if (outcome !== 'ok' && outcome !== 'client_gone') sums.errors++
  sums.prompt_tokens += prompt
  sums.completion_tokens += completion
  sums.cached_tokens += tokensOf(event.cachedTokens)
  sums.cache_write_tokens += tokensOf(event.cacheWriteTokens)
  sums.value_uinr += event.valueUinr
  sums.cost_uinr += event.costUinr
  // The hours of a batch, and replies of the cache, say nothing about the speed of a model.
  const isServed = outcome === 'ok' && status < 400 && event.kind !== 'batch' && event.provider !== cacheProviderId
  if (isServed) {
    const bucket = latencyBucket(event.latencyMs)
    latencies.set(bucket, (latencies.get(bucket) ?? 0) + 1)
  }
  if (model === null) return
  model.requests++
  model.tokens += prompt + completion
  // Errors of the client, and calls that the gateway cut, are not failures of the model. A failure on an own key may be one of the key or of its account.
  if (outcome === 'upstream_broke' || (outcome === 'failed' && status >= 500 && !event.byok)) model.failed++
  if (!isServed) return
  model.succeeded++
  if (completion === 0) return
  model.written_tokens += completion
  model.written_ms += wholeMs(event.latencyMs)
}
