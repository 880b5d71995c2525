/**
 * Writes a usage event in bytes for the journal, and reads it. Every call is written twice, so most fields have a fixed place. The layout, with
 * little-endian numbers:
 *
 * | bytes | field |
 * |---|---|
 * | 0 | version of this layout |
 * | 1 | outcome, by its place in `outcomes` |
 * | 2 | bits: estimated, idempotent, tried, run, more |
 * | 3 | length of the request id |
 * | 4 to 39 | id, in ASCII |
 * | 40 to 55 | value and cost, int64 |
 * | 56 to 151 | the twelve numbers in the order in which `write` writes them, float64; NaN stands for null |
 * | 152 … | request id, in UTF-8 |
 * | after it, with the bit `tried` | the length of the attempts that failed, uint16, and these attempts, in UTF-8 |
 * | after it, with the bit `run` | the agent of the run, float64 with NaN for null; the length of the run's id, uint16, and the id, in UTF-8 |
 * | after it, with the bit `more` | the length of a JSON object, uint16, and this object, in UTF-8: the sub-agent, the part of a panel, the tags, the searches, what a stored reply has saved |
 */
import type { Outcome, RunOfCall, UsageEvent } from './record.ts'
import { triedMaxChars } from './tried-routes.ts'

const layoutVersion = 1
/** The order is part of the format: outcomes may only be added at the end. */
const outcomes: readonly Outcome[] = ['ok', 'failed', 'client_gone', 'upstream_broke', 'cut', 'interrupted']
const outcomeBytes: ReadonlyMap<string, number> = new Map(outcomes.map((outcome, place) => [outcome, place]))
/** An earlier version does not look at the last bits, and reads nothing after the part that it knows. */
const [estimatedBit, idempotentBit, triedBit, runBit, moreBit] = [1, 2, 4, 8, 16]
const idBytes = 36
const moneyAt = 4 + idBytes
const numbersAt = moneyAt + 16
const requestIdAt = numbersAt + 12 * 8
const requestIdMaxBytes = 255
// A UTF-16 unit needs at most three bytes.
const triedMaxBytes = 3 * triedMaxChars
/** Ids of runs have at most 256 characters. */
const runMaxBytes = 3 * 256
/** A sub-agent has at most 256 characters, and tags have at most 8 keys of 32 and values of 64 characters. */
const moreMaxBytes = 4096
const int64Max = 2n ** 63n - 1n

/** The codec of usage events for the journal. */
export const usageEventCodec = {
  bigFields: ['valueUinr', 'costUinr', 'savedUinr'],
  bytesMax: requestIdAt + requestIdMaxBytes + 2 + triedMaxBytes + 10 + runMaxBytes + 2 + moreMaxBytes,
  factsOf,
  haveSameFacts,
  write,
  read,
}

type Facts = Pick<
  UsageEvent,
  'orgId' | 'userId' | 'keyId' | 'workspaceId' | 'agentId' | 'agentLabel' | 'kind' | 'model' | 'provider' | 'residency' | 'streamed' | 'byok'
>

function factsOf({ orgId, userId, keyId, workspaceId, agentId, agentLabel, kind, model, provider, residency, streamed, byok }: UsageEvent): Facts {
  return { orgId, userId, keyId, workspaceId, agentId, agentLabel, kind, model, provider, residency, streamed, byok }
}

function haveSameFacts(a: UsageEvent, b: UsageEvent): boolean {
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

function write(event: UsageEvent, bytes: Buffer, view: DataView, at: number): number {
  const { id, requestId, valueUinr, costUinr } = event
  const outcome = outcomeBytes.get(event.outcome)
  // A UTF-16 unit needs at most three bytes.
  if (outcome === undefined || id.length !== idBytes || requestId.length * 3 > requestIdMaxBytes || !isInt64(valueUinr) || !isInt64(costUinr)) return -1
  bytes[at] = layoutVersion
  bytes[at + 1] = outcome
  const { tried, runId } = event
  if ((tried !== undefined && tried.length > triedMaxChars) || (runId !== undefined && runId.length * 3 > runMaxBytes)) return -1
  const more = moreOf(event)
  if (more !== null && more.length * 3 > moreMaxBytes) return -1
  bytes[at + 2] =
    (event.estimated ? estimatedBit : 0) |
    (event.idempotent === true ? idempotentBit : 0) |
    (tried === undefined ? 0 : triedBit) |
    (runId === undefined ? 0 : runBit) |
    (more === null ? 0 : moreBit)
  const requestIdBytes = bytes.write(requestId, at + requestIdAt)
  bytes[at + 3] = requestIdBytes
  if (bytes.write(id, at + 4, idBytes) !== idBytes) return -1
  view.setBigInt64(at + moneyAt, valueUinr, true)
  view.setBigInt64(at + moneyAt + 8, costUinr, true)
  const to = at + numbersAt
  view.setFloat64(to, event.atMs, true)
  view.setFloat64(to + 8, event.status, true)
  view.setFloat64(to + 16, event.promptTokens, true)
  view.setFloat64(to + 24, event.completionTokens, true)
  view.setFloat64(to + 32, event.cachedTokens, true)
  view.setFloat64(to + 40, event.cacheWriteTokens, true)
  view.setFloat64(to + 48, event.reasoningTokens, true)
  view.setFloat64(to + 56, event.images, true)
  view.setFloat64(to + 64, event.audioSeconds, true)
  view.setFloat64(to + 72, event.characters, true)
  view.setFloat64(to + 80, event.latencyMs, true)
  view.setFloat64(to + 88, event.firstByteMs ?? Number.NaN, true)
  let end = at + requestIdAt + requestIdBytes
  if (tried !== undefined) end = writeText(tried, bytes, view, end)
  if (runId !== undefined) {
    view.setFloat64(end, event.runAgentId ?? Number.NaN, true)
    end = writeText(runId, bytes, view, end + 8)
  }
  return more === null ? end : writeText(more, bytes, view, end)
}

/** Returns the rare fields of an event as JSON. Null when it has none. */
function moreOf({ runSubagent, runPart, tags, searches, savedUinr }: UsageEvent): string | null {
  const isUsual = runSubagent === undefined && runPart === undefined && tags === undefined && searches === undefined && savedUinr === undefined
  return isUsual ? null : JSON.stringify({ runSubagent, runPart, tags, searches, savedUinr: savedUinr?.toString() })
}

/** Writes a text after its length, and returns the offset after it. */
function writeText(text: string, bytes: Buffer, view: DataView, at: number): number {
  const length = bytes.write(text, at + 2)
  view.setUint16(at, length, true)
  return at + 2 + length
}

function read(bytes: Buffer, at: number, facts: object): UsageEvent {
  const outcome = outcomes[bytes.readUInt8(at + 1)]
  if (bytes[at] !== layoutVersion || outcome === undefined) throw new SyntaxError('a later version of the program has written this usage event')
  const bits = bytes.readUInt8(at + 2)
  const requestIdEnd = at + requestIdAt + bytes.readUInt8(at + 3)
  const triedBytes = (bits & triedBit) === 0 ? 0 : bytes.readUInt16LE(requestIdEnd)
  const triedEnd = (bits & triedBit) === 0 ? requestIdEnd : requestIdEnd + 2 + triedBytes
  const runEnd = (bits & runBit) === 0 ? triedEnd : triedEnd + 10 + bytes.readUInt16LE(triedEnd + 8)
  const number = (place: number): number => numberAt(bytes, at + numbersAt + place * 8) as number
  return {
    id: bytes.toString('latin1', at + 4, at + 4 + idBytes),
    atMs: number(0),
    requestId: bytes.toString('utf8', at + requestIdAt, requestIdEnd),
    ...(facts as Facts),
    status: number(1),
    outcome,
    promptTokens: number(2),
    completionTokens: number(3),
    cachedTokens: number(4),
    cacheWriteTokens: number(5),
    reasoningTokens: number(6),
    images: number(7),
    audioSeconds: number(8),
    characters: number(9),
    estimated: (bits & estimatedBit) !== 0,
    valueUinr: bytes.readBigInt64LE(at + moneyAt),
    costUinr: bytes.readBigInt64LE(at + moneyAt + 8),
    latencyMs: number(10),
    firstByteMs: numberAt(bytes, at + numbersAt + 11 * 8),
    ...((bits & triedBit) === 0 ? {} : { tried: bytes.toString('utf8', requestIdEnd + 2, requestIdEnd + 2 + triedBytes) }),
    ...((bits & runBit) === 0 ? {} : runAt(bytes, triedEnd)),
    ...((bits & moreBit) === 0 ? {} : moreAt(bytes, runEnd)),
    ...((bits & idempotentBit) === 0 ? {} : { idempotent: true }),
  }
}

function runAt(bytes: Buffer, at: number): RunOfCall {
  const textAt = at + 10
  return { runAgentId: numberAt(bytes, at), runId: bytes.toString('utf8', textAt, textAt + bytes.readUInt16LE(at + 8)) }
}

function moreAt(bytes: Buffer, at: number): Pick<UsageEvent, 'runSubagent' | 'runPart' | 'tags' | 'searches' | 'savedUinr'> {
  const { savedUinr, ...more } = JSON.parse(bytes.toString('utf8', at + 2, at + 2 + bytes.readUInt16LE(at)))
  return savedUinr === undefined ? more : { ...more, savedUinr: BigInt(savedUinr) }
}

/** Returns a number, or null for NaN and for infinity, as JSON does. */
function numberAt(bytes: Buffer, at: number): number | null {
  const value = bytes.readDoubleLE(at)
  return Number.isFinite(value) ? value : null
}

const isInt64 = (amount: bigint): boolean => amount <= int64Max && amount >= -int64Max
