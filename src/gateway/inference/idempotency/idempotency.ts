/**
 * Idempotency keys. A charging call that is sent twice with one key is made and charged once. The end of a call is written in the transaction
 * that writes its usage, so the two always agree. Decision 0180 gives the reasons.
 */
import { createHash, createHmac, type Hmac } from 'node:crypto'
import type { Clock } from '../../../platform/clock.ts'
import { DatabaseUnavailableError, type Db, type Tx } from '../../../platform/db/db.ts'
import type { Call } from '../../../platform/endpoint.ts'
import { fail, type GatewayError } from '../../../platform/errors.ts'
import type { HeavyTurns } from '../../../platform/loop/heavy-turns.ts'
import type { Principal } from '../../../platform/security/principal.ts'
import { deriveKey } from '../../../platform/security/secrets.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import { inrFromUinr } from '../../../platform/values/money.ts'
import type { FounderOf } from '../../orgs/founders.ts'
import type { UsageEvent } from '../../usage/events/record.ts'
import {
  decideKey,
  deleteExpiredKeys,
  endKeysByEvent,
  endKeysOfDead,
  findKey,
  finishKey,
  freeKeysOf,
  type KeyInDoubt,
  type KeyRow,
  listKeysInDoubt,
  releaseKey,
  reserveKey,
} from './idempotency-queries.ts'
import { type KeyIdentity, KeyWaits } from './key-waits.ts'

/** The lifetime of a key. */
const keyLifeMs = 24 * 3600_000
/** The time for which a second call waits for the first. */
const waitMaxMs = 5000
/** A longer body is read in parts of this size, one in each heavy turn. */
const partBytes = 2 * 1024 * 1024
/** The most calls in doubt that a list returns. */
const inDoubtMax = 100
/** The interval between deletions of expired keys. */
export const onceSweepMs = 3600_000

/** A call with an idempotency key. */
export interface IdempotentCall {
  /** The id of the call's usage event. */
  readonly eventId: string
  /** True once a provider was called; the pipeline sets it. The usage event then ends the key. */
  dialed: boolean
}

/** The usage of the first call, as a repeated call gets it. */
interface OnceUsage {
  readonly request_id: string
  readonly model: string
  readonly provider: string
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly cost_inr: number
  readonly value_inr: number
  readonly outcome: string
}

/** The charges of a call in several parts, read at its end. */
export interface PartsAccount {
  isCharged(): boolean
  usage(outcome: string): object
}

export interface IdempotencyDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  /** Returns the founder of an organisation. Absent when each organisation counts for itself. */
  readonly founderOf?: FounderOf
  readonly heavyTurns: Pick<HeavyTurns, 'run'>
  readonly masterKey: Buffer
  /** Further keys under which a first call may have been recorded, while the master key is being changed. */
  readonly otherMasterKeys?: readonly Buffer[]
  /** Returns this process's id in the database. The id changes when the process is fenced. */
  processId(): bigint
}

interface KeyRef extends KeyIdentity {
  readonly bodyMac: Buffer
  /** The MACs of the same body under the other master keys. */
  readonly otherMacs: readonly Buffer[]
}

/** Serves a call once for each idempotency key. */
export class Idempotency {
  readonly #deps: IdempotencyDeps
  readonly #macKey: Buffer
  readonly #otherMacKeys: readonly Buffer[]
  readonly #waits: KeyWaits

  constructor(deps: IdempotencyDeps) {
    this.#deps = deps
    this.#waits = new KeyWaits(deps)
    this.#macKey = deriveKey(deps.masterKey, 'idempotency')
    this.#otherMacKeys = (deps.otherMasterKeys ?? []).map(key => deriveKey(key, 'idempotency'))
  }

  /**
   * Serves a call that is charged in one usage event. A call without a key is served immediately. Throws `idempotency_mismatch`,
   * `idempotency_replayed`, `idempotency_in_progress`, `database_unavailable`, and all errors of `serve`.
   */
  once<T>(call: Call<Principal>, body: readonly (Buffer | string)[], serve: (idempotentCall: IdempotentCall | null) => Promise<T>): Promise<T> {
    return call.idempotencyKey === undefined ? serve(null) : this.#keyed(call.idempotencyKey, call, body, serve)
  }

  /** Serves a call that is charged in several events, whose sum is in `account`. A call that was charged but ended without an answer is not made again. */
  async onceInParts<T>(call: Call<Principal>, body: readonly (Buffer | string)[], serve: () => Promise<T>, account: PartsAccount): Promise<T> {
    if (call.idempotencyKey === undefined) return serve()
    const ref = await this.#refOf(call.idempotencyKey, call, body)
    const reservedAt = await this.#reserve(ref, null, call)
    // A charged call is answered even when its key cannot be ended now. Such a key stays taken until it expires.
    const finish = (outcome: string): Promise<unknown> =>
      this.#deps.db
        .exec(finishKey, ref.orgId, ref.principal, ref.keyHash, reservedAt, JSON.stringify({ request_id: call.requestId, ...account.usage(outcome) }))
        .catch(() => undefined)
    let served: T
    try {
      served = await serve()
    } catch (error) {
      await (account.isCharged() ? finish(call.signal.aborted ? 'client_gone' : 'failed') : this.#release(ref, reservedAt))
      throw error
    }
    await finish('ok')
    return served
  }

  /** Returns at most 100 calls with an unknown end, the oldest first. Their process died while a provider worked, or has been silent for `silentMs`. */
  inDoubt(silentMs: number): Promise<readonly KeyInDoubt[]> {
    return this.#deps.db.many(listKeysInDoubt, BigInt(silentMs), inDoubtMax)
  }

  /**
   * Ends the doubt about a call. `apply` means that the call was made, so its key stays taken until it expires. `discard` frees the key. A
   * charge of the call stays in both cases. Throws an Error of one line when no such call is in doubt.
   */
  async decide(orgId: number, call: string, decision: 'apply' | 'discard', silentMs: number): Promise<void> {
    const decided = await this.#deps.db.one(decideKey, orgId, call, decision === 'apply', BigInt(silentMs))
    if (decided.count === 0n) throw new Error(`organisation ${orgId} has no call ${call} in doubt; brigade admin in-doubt list shows those that there are`)
  }

  /** Deletes expired keys. */
  async sweep(): Promise<void> {
    await this.#deps.db.exec(deleteExpiredKeys, new Date(this.#deps.clock.nowMs()))
  }

  async #keyed<T>(key: string, call: Call<Principal>, body: readonly (Buffer | string)[], serve: (idempotentCall: IdempotentCall) => Promise<T>): Promise<T> {
    const { ids, clock } = this.#deps
    const ref = await this.#refOf(key, call, body)
    const idempotentCall: IdempotentCall = { eventId: ids.uuidv7(clock.nowMs()), dialed: false }
    const reservedAt = await this.#reserve(ref, idempotentCall.eventId, call)
    try {
      return await serve(idempotentCall)
    } catch (error) {
      if (!idempotentCall.dialed) await this.#release(ref, reservedAt)
      throw error
    }
  }

  async #refOf(key: string, call: Call<Principal>, body: readonly (Buffer | string)[]): Promise<KeyRef> {
    const { principal } = call
    if (principal.kind === 'session') throw fail('invalid_api_key')
    const { orgId } = principal
    const macUnder = (macKey: Buffer): Hmac => createHmac('sha256', macKey).update(`${call.path ?? ''}\n`)
    const mac = macUnder(this.#macKey)
    const others = this.#otherMacKeys.map(macUnder)
    const update = (bytes: Buffer | string): void => {
      for (const each of [mac, ...others]) each.update(bytes)
    }
    for (const part of body) {
      update(`${Buffer.byteLength(part)}\n`)
      if (part.length <= partBytes) update(part)
      else for (const piece of piecesOf(part)) await this.#deps.heavyTurns.run(orgId, () => update(piece), call.signal)
    }
    return {
      orgId,
      principal: principal.kind === 'agent' ? `agent:${principal.agentId}` : `key:${principal.keyId}`,
      keyHash: createHash('sha256').update(key).digest(),
      bodyMac: mac.digest(),
      otherMacs: others.map(other => other.digest()),
    }
  }

  /** Reserves the key and returns the time of the reservation, which identifies it. */
  async #reserve(ref: KeyRef, eventId: string | null, { signal }: Call<Principal>): Promise<Date> {
    const { db, clock, processId } = this.#deps
    const { orgId, principal, keyHash, bodyMac } = ref
    const macs = [bodyMac, ...ref.otherMacs]
    const deadlineMs = clock.monotonicMs() + waitMaxMs
    const checkTaken = (taken: KeyRow): void => {
      const refused = refusalOf(taken, macs, clock.monotonicMs() >= deadlineMs)
      if (refused !== null) throw refused
    }
    try {
      for (;;) {
        let taken = this.#waits.peek(ref)
        // The key of another body may have been freed since the last look.
        if (taken === null || !isOfBody(taken, macs)) {
          const nowMs = clock.nowMs()
          const at = new Date(nowMs)
          if ((await db.maybe(reserveKey, orgId, principal, keyHash, bodyMac, eventId, processId(), at, new Date(nowMs + keyLifeMs))) !== null) return at
          taken = await db.maybe(findKey, orgId, principal, keyHash)
          // The key may have been freed between the two statements.
          if (taken === null) continue
        }
        checkTaken(taken)
        const waited = await this.#waits.wait(ref, taken, deadlineMs, signal)
        signal.throwIfAborted()
        if (waited !== null) checkTaken(waited)
      }
    } catch (error) {
      throw error instanceof DatabaseUnavailableError ? fail('database_unavailable', { cause: error }) : error
    }
  }

  /** A key that cannot be freed now expires later. */
  async #release({ orgId, principal, keyHash }: KeyRef, reservedAt: Date): Promise<void> {
    await this.#deps.db.exec(releaseKey, orgId, principal, keyHash, reservedAt).catch(() => undefined)
  }
}

/** Returns the refusal of a repeated call. Null when the first call still runs and there is time to wait for it. */
function refusalOf(taken: KeyRow, asked: readonly Buffer[], isLate: boolean): GatewayError | null {
  const { state, usage } = taken
  if (!isOfBody(taken, asked)) return fail('idempotency_mismatch')
  switch (state) {
    case 'finished':
      return fail('idempotency_replayed', { extra: { usage } })
    case 'unknown':
      return fail('idempotency_replayed', {
        message:
          'A call with this Idempotency-Key was interrupted while a provider worked on it. It may have been charged and is not made again. Use a new key to try once more.',
        extra: { usage: usage ?? { outcome: 'unknown' } },
      })
    case 'reserved':
      return isLate ? fail('idempotency_in_progress') : null
  }
}

const isOfBody = ({ bodyMac }: KeyRow, asked: readonly Buffer[]): boolean => asked.some(mac => mac.equals(bodyMac))

/** Ends the keys of events when the events are written. It runs in the transaction of the flush, with the new events only. */
export async function endOnceKeys(tx: Tx, events: readonly UsageEvent[]): Promise<readonly string[]> {
  const keyed = events.filter(event => event.idempotent === true)
  if (keyed.length > 0)
    await tx.one(
      endKeysByEvent,
      keyed.map(({ id }) => id),
      keyed.map(stateOf),
      keyed.map(event => JSON.stringify(usageOf(event))),
    )
  return []
}

/** Ends the reserved keys of a dead process after its journal was replayed. It runs in the transaction that closes the process. */
export async function endOnceKeysOf(tx: Tx, processId: bigint): Promise<void> {
  await tx.one(endKeysOfDead, processId)
}

/** Frees the reserved keys of a process that the operator gives up. The end of those calls stays unknown, so they may now be made again. */
export async function freeOnceKeysOf(tx: Tx, processId: bigint): Promise<void> {
  await tx.exec(freeKeysOf, processId)
}

/** A call without cost may be made again. A call that was running when its process died may not. */
function stateOf({ outcome, valueUinr }: UsageEvent): string {
  if (outcome === 'failed' && valueUinr === 0n) return 'released'
  return outcome === 'interrupted' ? 'unknown' : 'finished'
}

function usageOf({ requestId, model, provider, promptTokens, completionTokens, costUinr, valueUinr, outcome }: UsageEvent): OnceUsage {
  return {
    request_id: requestId,
    model: model.replaceAll('\u0000', ''),
    provider,
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    cost_inr: inrFromUinr(costUinr),
    value_inr: inrFromUinr(valueUinr),
    outcome,
  }
}

/** Returns the bytes of a long part in pieces, each for one heavy turn. */
function piecesOf(part: Buffer | string): readonly Buffer[] {
  const bytes = typeof part === 'string' ? Buffer.from(part) : part
  return Array.from({ length: Math.ceil(bytes.length / partBytes) }, (_, n) => bytes.subarray(n * partBytes, (n + 1) * partBytes))
}
