import { expect, it } from 'vitest'
import { type Charge, decodeRecords, type JournalRecord, RecordBuffer } from '../../../src/gateway/limits/journal/journal-records.ts'
import type { UsageEvent } from '../../../src/gateway/usage/events/record.ts'
import { usageEventText } from '../../../src/gateway/usage/events/record-text.ts'

const charge: Charge = { orgId: 1, month: '2026-11', monthEndsAtMs: 1, scopes: [['org', '1']] }
const event: UsageEvent = {
  id: '01890000-0000-7000-8000-000000000001',
  atMs: 1_760_000_000_123,
  requestId: 'req_0123456789abcdef01234567',
  orgId: 1,
  userId: 2,
  keyId: 3,
  workspaceId: null,
  agentId: null,
  agentLabel: null,
  kind: 'chat',
  model: 'model',
  provider: 'provider',
  residency: 'india',
  streamed: false,
  byok: false,
  status: 200,
  outcome: 'ok',
  promptTokens: 90,
  completionTokens: 300,
  cachedTokens: 1,
  cacheWriteTokens: 5,
  images: 5,
  audioSeconds: 5,
  characters: 5,
  reasoningTokens: 2,
  estimated: false,
  valueUinr: 12_900n,
  costUinr: 0n,
  latencyMs: 12,
  firstByteMs: null,
}
const odd = '"\\ \n é 😀 \u2028'

const roundTrip = (events: readonly UsageEvent[], eventText: typeof usageEventText | null): UsageEvent[] => {
  const buffer = new RecordBuffer<UsageEvent>(eventText)
  for (const each of events) buffer.add({ kind: 'open', event: each, charge, counts: [] })
  return [...decodeRecords<UsageEvent>(buffer.bytes, 0)].map(({ record }) => (record as Extract<JournalRecord<UsageEvent>, { event: UsageEvent }>).event)
}

// Callers 3, 259 and the agents share a place of the remembered texts; every field differs from its neighbour once.
const events: readonly UsageEvent[] = [
  event,
  event,
  { ...event, keyId: 259 },
  { ...event, keyId: null, userId: null, firstByteMs: 7, estimated: true, status: 502, outcome: 'failed' },
  { ...event, model: odd },
  { ...event, provider: odd },
  { ...event, agentLabel: odd },
  { ...event, agentId: 9 },
  { ...event, agentId: 9 + 256 },
  { ...event, workspaceId: 4 },
  { ...event, userId: 5 },
  { ...event, orgId: 6 },
  { ...event, kind: 'embeddings' },
  { ...event, residency: 'global' },
  { ...event, streamed: true },
  { ...event, byok: true },
  { ...event, requestId: odd },
  { ...event, valueUinr: 2n ** 60n, costUinr: 2n ** 60n },
  event,
]

it('a usage event is read from the journal as it was written, whatever caller came before', () => {
  expect(roundTrip(events, usageEventText)).toEqual(events)
})

it('an event is read from the journal as it was written, also without its own JSON writer', () => {
  expect(roundTrip(events, null)).toEqual(events)
})
