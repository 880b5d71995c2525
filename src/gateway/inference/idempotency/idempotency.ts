/**
 * Idempotency keys: a charging call that is sent twice with one key is made and charged once. The end of a call is written in the
 * transaction that writes its usage, so the two cannot disagree. Decision 0180 says why.
 */
import { createHash, createHmac } from 'node:crypto'
import type { Clock } from '../../../platform/clock.ts'
import { DatabaseUnavailableError, type Db, type Tx } from '../../../platform/db/db.ts'
import type { Call } from '../../../platform/endpoint.ts'
import { fail, type GatewayError } from '../../../platform/errors.ts'
import type { Principal } from '../../../platform/security/principal.ts'
import { deriveKey } from '../../../platform/security/secrets.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import { inrFromUinr } from '../../../platform/values/money.ts'
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

/** How long a key lives. */
const keyLifeMs = 24 * 3600_000
/** How long a second call waits for the first. */
const waitMaxMs = 5000
const pollMs = 50
/** The most calls in doubt that a list returns. */
const inDoubtMax = 100
/** How often keys that have run out are deleted. */
export const onceSweepMs = 3600_000

/** A call that holds a key. */
export interface IdempotentCall {
  /** The id that its usage event gets. */
  readonly eventId: string
  /** Set by the pipeline: a provider was called, so the usage event ends the key. */
  dialed: boolean
}

/** What the caller is told of the first call. */
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

/** What a call of several parts was charged, at its end. */
export interface PartsAccount {
  isCharged(): boolean
  usage(outcome: string): object
}

export interface IdempotencyDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly masterKey: Buffer
  /** Keys under which a first call may have been noted, while the master key is changed. */
  readonly otherMasterKeys?: readonly Buffer[]
  /** This process's id in the database; it changes when the process is fenced. */
  processId(): bigint
}

interface KeyRef {
  readonly orgId: number
  readonly principal: string
  readonly keyHash: Buffer
  readonly bodyMac: Buffer
  /** The same body under the other master keys. */
  readonly otherMacs: readonly Buffer[]
}

/** Serves calls once by key. */
export class Idempotency {
  readonly #deps: IdempotencyDeps
  readonly #macKey: Buffer
  readonly #otherMacKeys: readonly Buffer[]

  constructor(deps: IdempotencyDeps) {
    this.#deps = deps
    this.#macKey = deriveKey(deps.masterKey, 'idempotency')
    this.#otherMacKeys = (deps.otherMasterKeys ?? []).map(key => deriveKey(key, 'idempotency'))
  }

  /**
   * Serves a call that is charged in one usage event. Without a key it is served immediately. Throws `idempotency_mismatch`,
   * `idempotency_replayed`, `idempotency_in_progress`, `database_unavailable`, and what `serve` throws.
   */
  once<T>(call: Call<Principal>, body: readonly (Buffer | string)[], serve: (idempotentCall: IdempotentCall | null) => Promise<T>): Promise<T> {
    return call.idempotencyKey === undefined ? serve(null) : this.#keyed(call.idempotencyKey, call, body, serve)
  }

  /** The same for a call that is charged in several events: `account` sums them up. One that ends without an answer but was charged is not made again. */
  async onceInParts<T>(call: Call<Principal>, body: readonly (Buffer | string)[], serve: () => Promise<T>, account: PartsAccount): Promise<T> {
    if (call.idempotencyKey === undefined) return serve()
    const ref = this.#refOf(call.idempotencyKey, call, body)
    const reservedAt = await this.#reserve(ref, null, call)
    // What is charged has its answer, whether the key can be ended now or not: one that cannot stays taken until it runs out.
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

  /** At most 100 calls of which nobody knows how they ended, the oldest first: their process died while a provider worked, or has been silent for so long. */
  inDoubt(silentMs: number): Promise<readonly KeyInDoubt[]> {
    return this.#deps.db.many(listKeysInDoubt, BigInt(silentMs), inDoubtMax)
  }

  /**
   * Ends the doubt about a call: 'apply' says that it was made, so that its key stays taken until it runs out; 'discard' frees the key. The charge of
   * the call, if there was one, stays. Throws an Error of one line when no such call is in doubt.
   */
  async decide(orgId: number, call: string, decision: 'apply' | 'discard', silentMs: number): Promise<void> {
    const decided = await this.#deps.db.one(decideKey, orgId, call, decision === 'apply', BigInt(silentMs))
    if (decided.count === 0n) throw new Error(`organisation ${orgId} has no call ${call} in doubt; brigade admin in-doubt list shows those that there are`)
  }

  /** Deletes keys that have run out. */
  async sweep(): Promise<void> {
    await this.#deps.db.exec(deleteExpiredKeys, new Date(this.#deps.clock.nowMs()))
  }

  async #keyed<T>(key: string, call: Call<Principal>, body: readonly (Buffer | string)[], serve: (idempotentCall: IdempotentCall) => Promise<T>): Promise<T> {
    const { ids, clock } = this.#deps
    const ref = this.#refOf(key, call, body)
    const idempotentCall: IdempotentCall = { eventId: ids.uuidv7(clock.nowMs()), dialed: false }
    const reservedAt = await this.#reserve(ref, idempotentCall.eventId, call)
    try {
      return await serve(idempotentCall)
    } catch (error) {
      if (!idempotentCall.dialed) await this.#release(ref, reservedAt)
      throw error
    }
  }

  #refOf(key: string, { principal, path }: Call<Principal>, body: readonly (Buffer | string)[]): KeyRef {
    if (principal.kind === 'session') throw fail('invalid_api_key')
    const macUnder = (macKey: Buffer): Buffer => {
      const mac = createHmac('sha256', macKey).update(`${path ?? ''}\n`)
      for (const part of body) mac.update(`${Buffer.byteLength(part)}\n`).update(part)
      return mac.digest()
    }
    return {
      orgId: principal.orgId,
      principal: principal.kind === 'agent' ? `agent:${principal.agentId}` : `key:${principal.keyId}`,
      keyHash: createHash('sha256').update(key).digest(),
      bodyMac: macUnder(this.#macKey),
      otherMacs: this.#otherMacKeys.map(macUnder),
    }
  }

  /** When the key was reserved: names this reservation. */
  async #reserve(ref: KeyRef, eventId: string | null, { signal }: Call<Principal>): Promise<Date> {
    const { db, clock, processId } = this.#deps
    const { orgId, principal, keyHash, bodyMac } = ref
    const deadlineMs = clock.monotonicMs() + waitMaxMs
    try {
      for (;;) {
        const nowMs = clock.nowMs()
        const at = new Date(nowMs)
        if ((await db.maybe(reserveKey, orgId, principal, keyHash, bodyMac, eventId, processId(), at, new Date(nowMs + keyLifeMs))) !== null) return at
        const taken = await db.maybe(findKey, orgId, principal, keyHash)
        // It may have been let go of between the two.
        if (taken === null) continue
        const refused = refusalOf(taken, [bodyMac, ...ref.otherMacs], clock.monotonicMs() >= deadlineMs)
        if (refused !== null) throw refused
        await clock.sleep(pollMs)
        signal.throwIfAborted()
      }
    } catch (error) {
      throw error instanceof DatabaseUnavailableError ? fail('database_unavailable', { cause: error }) : error
    }
  }

  /** A key that cannot be let go of now runs out by itself. */
  async #release({ orgId, principal, keyHash }: KeyRef, reservedAt: Date): Promise<void> {
    await this.#deps.db.exec(releaseKey, orgId, principal, keyHash, reservedAt).catch(() => undefined)
  }
}

/** Null: the first call still runs, and there is time to wait for it. */
function refusalOf({ bodyMac, state, usage }: KeyRow, asked: readonly Buffer[], isLate: boolean): GatewayError | null {
  if (!asked.some(mac => mac.equals(bodyMac))) return fail('idempotency_mismatch')
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

/** Ends the keys of events as they are written. Runs in the transaction of the flush, with the events that are new. */
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

/** What was reserved by a process that is dead and whose journal has been replayed. Runs in the transaction that closes it. */
export async function endOnceKeysOf(tx: Tx, processId: bigint): Promise<void> {
  await tx.one(endKeysOfDead, processId)
}

/** What was reserved by a process that the operator gives up: nobody will ever say what became of those calls, and they may be made again now. */
export async function freeOnceKeysOf(tx: Tx, processId: bigint): Promise<void> {
  await tx.exec(freeKeysOf, processId)
}

/** A call that cost nothing may be made again; one that was running when its process died may not. */
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
