/** Writes a usage event as JSON for the journal. Every call writes its event twice, and `JSON.stringify` of the whole event takes three times as long. */
import type { UsageEvent } from './record.ts'

/** The fields of an event that are the same for all calls of one caller on one route, with their JSON text. */
interface Facts {
  readonly of: UsageEvent
  readonly text: string
}

/** Number of remembered texts. It must be a power of two. When two callers have the same slot, each overwrites the text of the other. */
const places = 256
const known: (Facts | undefined)[] = new Array<Facts | undefined>(places).fill(undefined)

/** Writes a usage event as JSON. Bigints become strings. */
export const usageEventText = {
  bigFields: '["valueUinr","costUinr"]',
  text: textOf,
}

function textOf(event: UsageEvent): string {
  return `{"id":"${event.id}","atMs":${number(event.atMs)},"requestId":${JSON.stringify(event.requestId)},${factsText(event)},"status":${number(event.status)},"outcome":"${event.outcome}","promptTokens":${number(event.promptTokens)},"completionTokens":${number(event.completionTokens)},"cachedTokens":${number(event.cachedTokens)},"cacheWriteTokens":${number(event.cacheWriteTokens)},"reasoningTokens":${number(event.reasoningTokens)},"images":${number(event.images)},"audioSeconds":${number(event.audioSeconds)},"characters":${number(event.characters)},"estimated":${event.estimated},"valueUinr":"${event.valueUinr}","costUinr":"${event.costUinr}","latencyMs":${number(event.latencyMs)},"firstByteMs":${number(event.firstByteMs)}${event.idempotent === true ? ',"idempotent":true' : ''}}`
}

/** Returns the number, or null when JSON cannot represent it. */
const number = (value: number | null): number | null => (Number.isFinite(value) ? value : null)

function factsText(event: UsageEvent): string {
  const place = ((event.keyId ?? 0) * 31 + (event.agentId ?? 0)) & (places - 1)
  const facts = known[place]
  if (facts !== undefined && areSame(facts.of, event)) return facts.text
  const { orgId, userId, keyId, workspaceId, agentId, agentLabel, kind, model, provider, residency, streamed, byok } = event
  const text = JSON.stringify({ orgId, userId, keyId, workspaceId, agentId, agentLabel, kind, model, provider, residency, streamed, byok }).slice(1, -1)
  known[place] = { of: event, text }
  return text
}

function areSame(a: UsageEvent, b: UsageEvent): boolean {
  return (
    a.keyId === b.keyId &&
    a.model === b.model &&
    a.provider === b.provider &&
    a.streamed === b.streamed &&
    a.byok === b.byok &&
    a.agentId === b.agentId &&
    a.agentLabel === b.agentLabel &&
    a.orgId === b.orgId &&
    a.userId === b.userId &&
    a.workspaceId === b.workspaceId &&
    a.kind === b.kind &&
    a.residency === b.residency
  )
}
