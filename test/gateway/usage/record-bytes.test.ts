import { crc32 } from 'node:zlib'
import { expect, it } from 'vitest'
import { type Charge, type JournalRecord, RecordBuffer, RecordDecoder } from '../../../src/gateway/limits/journal/journal-records.ts'
import type { UsageEvent } from '../../../src/gateway/usage/events/record.ts'
import { usageEventCodec } from '../../../src/gateway/usage/events/record-bytes.ts'

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

type Settle = Extract<JournalRecord<UsageEvent>, { kind: 'settle' }>

/** Writes the events as records, each with its own amounts, and reads them. */
function roundTrip(events: readonly UsageEvent[], codec: typeof usageEventCodec | null): Settle[] {
  const buffer = new RecordBuffer<UsageEvent>(codec)
  const base = 5000
  for (const [i, each] of events.entries()) buffer.add({ kind: 'settle', event: each, charge, counts: [[9n, 1n]], released: released(i) }, base)
  return [...new RecordDecoder<UsageEvent>(codec, () => null).decode(buffer.bytes, base)].map(({ record }) => record as Settle)
}

const released = (i: number): [bigint, bigint][] => Array.from({ length: i % 3 }, (_, n) => [BigInt(n + 1), 2n ** BigInt(3 * i)])

// Every field differs from its neighbour once.
const events: readonly UsageEvent[] = [
  event,
  event,
  { ...event, keyId: 259 },
  { ...event, keyId: null, userId: null, firstByteMs: 7, estimated: true, status: 502, outcome: 'failed' },
  { ...event, kind: 'rerank', searches: 3 },
  { ...event, searches: 2, savedUinr: 7n, runId: 'run', runAgentId: 4, tried: 'x' },
  { ...event, savedUinr: 2n ** 40n, idempotent: true },
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
  // These have no place in the bytes and are written as JSON.
  { ...event, valueUinr: 2n ** 70n },
  { ...event, requestId: 'r'.repeat(300) },
  { ...event, valueUinr: -5n, status: 3e9, atMs: 1.5, latencyMs: 0.1 + 0.2 },
  { ...event, idempotent: true, requestId: '' },
  { ...event, tried: `[2,[${JSON.stringify(odd)}]]` },
  { ...event, idempotent: true, tried: '' },
  { ...event, tried: 'é'.repeat(3000) },
  { ...event, runId: 'pr-1234', runAgentId: 7 },
  { ...event, runId: 'r'.repeat(256), runAgentId: null },
  { ...event, runId: 'a b', runAgentId: 2 ** 31 - 1, tried: `[2,[${JSON.stringify(odd)}]]`, idempotent: true },
  { ...event, tags: '{"pr":"1234"}' },
  { ...event, runId: 'pr-1234', runAgentId: null, runSubagent: odd, runPart: true, tags: '{"pr":"1"}', tried: '[2,[]]' },
  { ...event, runId: 'pr-1234', runAgentId: 7, runPart: true },
  { ...event, runId: 'pr-1234', runAgentId: 7, runSubagent: 's'.repeat(2000) },
  // This id is longer than any, and is written as JSON.
  { ...event, runId: 'r'.repeat(257), runAgentId: 7 },
  event,
]

it.each([
  ['bytes', usageEventCodec],
  ['JSON', null],
] as const)('a usage event is read from the journal as it was written, in %s', (_, codec) => {
  const read = roundTrip(events, codec)
  expect(read.map(record => record.event)).toEqual(events)
  expect(read.map(record => record.released)).toEqual(events.map((_event, i) => released(i)))
  for (const record of read) expect(record).toMatchObject({ kind: 'settle', charge, counts: [[9n, 1n]] })
})

it('a call of a known caller takes less than 300 bytes of the journal for each record', () => {
  const buffer = new RecordBuffer<UsageEvent>(usageEventCodec)
  const size = (): number => {
    const before = buffer.bytes.length
    buffer.add({ kind: 'settle', event, charge, counts: [], released: released(2) }, 0)
    return buffer.bytes.length - before
  }
  const first = size()
  expect(first).toBeGreaterThan(size())
  expect(size()).toBeLessThan(300)
})

it('a record of a later version is reported and not skipped', () => {
  const buffer = new RecordBuffer<UsageEvent>(usageEventCodec)
  buffer.add({ kind: 'open', event, charge, counts: [] }, 0)
  const read = (bytes: Buffer) => [...new RecordDecoder<UsageEvent>(usageEventCodec, () => null).decode(bytes, 0)]
  expect(read(buffer.bytes)).toHaveLength(1)
  expect(() => read(withFirstByte(buffer.bytes, 77))).toThrow('cannot read a journal record of type 77')
})

/** Returns the bytes with another type of the last record. */
function withFirstByte(bytes: Buffer, type: number): Buffer {
  const factsLength = 8 + bytes.readUInt32LE(0)
  const changed = Buffer.from(bytes)
  changed[factsLength + 8] = type
  changed.writeUInt32LE(crc32(changed.subarray(factsLength + 8)), factsLength + 4)
  return changed
}
