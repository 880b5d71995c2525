import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type JWK } from 'jose'
import { z } from 'zod'
import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db/db.ts'
import type { ControlLog } from '../../platform/db/db-control-log.ts'
import { fail } from '../../platform/errors.ts'
import type { Sealer } from '../../platform/security/secrets.ts'
import { deleteNextKey, insertSigningKey, keyAges, loadSigningKeys, lockRotation, promoteNextKey, retireCurrentKey, type SigningKeyRow } from '../queries.ts'

/** The only signature algorithm of agent tokens. */
export const tokenAlgorithm = 'ES256'
/** How long a verifier may cache the published keys. */
export const jwksMaxAgeSeconds = 300
/** How long a key is published before it signs. The time is twice the max-age, so every verifier that obeys the max-age has read the key by then. */
const publishLeadMs = 2 * jwksMaxAgeSeconds * 1000
/** A retired key verifies tokens for the life of a token plus this time. */
const slackMs = 5 * 60_000
const reloadEveryMs = 30_000
/** The minimum time between two loads that unknown key ids cause in this process. */
const retryUnknownMs = 1_000

const notOpened =
  'This gateway cannot sign agent tokens: its signing key was sealed under another MASTER_KEY. The operator has to put that one back, or run brigade admin rotate-signing-key.'

type VerifyingKey = Awaited<ReturnType<typeof importJWK>>

const publicJwk = z.object({
  kty: z.literal('EC'),
  crv: z.literal('P-256'),
  x: z.string(),
  y: z.string(),
  kid: z.string(),
  alg: z.literal(tokenAlgorithm),
  use: z.literal('sig'),
})
/** A published key. */
export type PublicJwk = z.output<typeof publicJwk>
const privateJwk = z.looseObject({ kty: z.literal('EC'), d: z.string() })

interface LoadedKey {
  readonly kid: string
  readonly state: SigningKeyRow['state']
  readonly jwk: PublicJwk
  readonly verifying: VerifyingKey
}

export interface SigningKeysDeps {
  readonly db: Db
  readonly clock: Clock
  readonly controlLog: ControlLog
  readonly sealer: Sealer
  /** The setting AGENT_TOKEN_TTL_S, in milliseconds. */
  readonly tokenTtlMs: number
}

/**
 * The result of a rotation. `not_due` means that the current key is younger than `minAgeMs`. `too_early` means that the next key has not been public
 * long enough. `next_replaced` means that a new next key replaces one that was sealed under another master key, because this process cannot open it.
 */
export type Rotation =
  | { readonly kind: 'rotated'; readonly kid: string }
  | { readonly kind: 'not_due' }
  | { readonly kind: 'too_early' | 'next_replaced'; readonly waitMs: number }

/**
 * The keys of agent tokens. One key signs. The next key is already published, so after a rotation every verifier has the key that it needs. Private
 * keys are stored sealed. The first use creates both keys, and any number of processes may do so concurrently. Decision 0199 says why.
 */
export class SigningKeys {
  readonly #deps: SigningKeysDeps
  #keys: readonly LoadedKey[] = []
  #signing: { readonly kid: string; readonly key: VerifyingKey } | null = null
  #whyNotOpened: unknown = null
  #loadedAtMs = Number.NEGATIVE_INFINITY
  #loading: Promise<void> | null = null

  constructor(deps: SigningKeysDeps) {
    this.#deps = deps
    deps.controlLog.on(news => {
      if (news.kind === 'signing_keys_changed') this.#loadedAtMs = Number.NEGATIVE_INFINITY
    })
  }

  /** Returns the key that signs now. Throws `internal_error` with an explanation when that key was sealed under another master key. */
  async current(): Promise<{ kid: string; key: VerifyingKey }> {
    await this.#fresh(reloadEveryMs)
    if (this.#signing === null) throw fail('internal_error', { message: notOpened, cause: this.#whyNotOpened })
    return this.#signing
  }

  /** Returns the key of that id. Returns null when the key is unknown or its last token has expired. */
  async verifying(kid: string): Promise<VerifyingKey | null> {
    const find = (): VerifyingKey | null => this.#keys.find(key => key.kid === kid)?.verifying ?? null
    const known = find()
    if (known !== null) return known
    await this.#fresh(retryUnknownMs)
    return find()
  }

  /** Returns whether the master key of this process opens the signing key. Returns true while there is no signing key. */
  async isOpened(): Promise<boolean> {
    const current = (await this.#deps.db.many(loadSigningKeys, 0)).find(row => row.state === 'current')
    if (current === undefined) return true
    return this.#opens(current)
  }

  /** Returns the keys of /.well-known/jwks.json: the current key, the next key, and the retired keys whose tokens may still be valid. */
  async published(): Promise<readonly PublicJwk[]> {
    await this.#fresh(reloadEveryMs)
    return this.#keys.map(key => key.jwk)
  }

  /**
   * Makes the next key the signing key, and publishes a new next key. When several processes rotate concurrently, one rotation happens. The result is
   * `too_early` until the next key has been public long enough, and `not_due` while the current key has signed for less than `minAgeMs`. Throws
   * `internal_error` when the next key was sealed under another master key, unless `replacesNext` is true.
   */
  async rotate({ minAgeMs = 0, replacesNext = false }: { readonly minAgeMs?: number; readonly replacesNext?: boolean } = {}): Promise<Rotation> {
    const made = await this.#makeKey()
    await this.#fresh(reloadEveryMs)
    const rotation = await this.#deps.controlLog.change<Rotation>(async tx => {
      await tx.one(lockRotation)
      const ages = await tx.many(keyAges)
      const current = ages.find(key => key.state === 'current')
      const next = ages.find(key => key.state === 'next')
      if (current !== undefined && current.ageMs < minAgeMs) return { value: { kind: 'not_due' }, news: [] }
      const isOpened = next !== undefined && this.#opens(next)
      if (isOpened && next.ageMs < publishLeadMs) return { value: { kind: 'too_early', waitMs: publishLeadMs - next.ageMs }, news: [] }
      if (isOpened) {
        await tx.exec(retireCurrentKey)
        await tx.exec(promoteNextKey)
      } else if (next !== undefined && !replacesNext) throw fail('internal_error', { message: notOpened })
      else await tx.exec(deleteNextKey)
      await made.insert(tx, 'next')
      const value: Rotation = isOpened ? { kind: 'rotated', kid: next.kid } : { kind: 'next_replaced', waitMs: publishLeadMs }
      return { value, news: [{ kind: 'signing_keys_changed', ref: next?.kid ?? '' }] }
    })
    this.#loadedAtMs = Number.NEGATIVE_INFINITY
    return rotation
  }

  /** Loads the keys when the last load is older than `maxAgeMs`. Concurrent callers share one load. Creates the keys when there are none. */
  async #fresh(maxAgeMs: number): Promise<void> {
    if (this.#deps.clock.monotonicMs() - this.#loadedAtMs < maxAgeMs) return
    this.#loading ??= this.#load().finally(() => {
      this.#loading = null
    })
    await this.#loading
  }

  async #load(): Promise<void> {
    const { db, clock, tokenTtlMs } = this.#deps
    const startedMs = clock.monotonicMs()
    const keepMs = tokenTtlMs + slackMs
    let rows = await db.many(loadSigningKeys, keepMs)
    if (!rows.some(row => row.state === 'current')) {
      const [current, next] = await Promise.all([this.#makeKey(), this.#makeKey()])
      await db.tx(async tx => {
        await current.insert(tx, 'current')
        await next.insert(tx, 'next')
      })
      rows = await db.many(loadSigningKeys, keepMs)
    }
    this.#keys = await Promise.all(rows.map(loadedKey))
    const current = rows.find(row => row.state === 'current')
    if (current !== undefined && this.#signing?.kid !== current.kid) await this.#openSigning(current)
    this.#loadedAtMs = startedMs
  }

  /** Opens the private key. A process that cannot open it still verifies tokens, but cannot sign. */
  async #openSigning({ kid, privateSealed }: SigningKeyRow): Promise<void> {
    this.#signing = null
    try {
      const jwk = privateJwk.parse(JSON.parse(this.#deps.sealer.open(privateSealed, signingKeyOwner(kid))))
      this.#signing = { kid, key: await importJWK(jwk, tokenAlgorithm) }
    } catch (error) {
      this.#whyNotOpened = error
    }
  }

  #opens({ kid, privateSealed }: Pick<SigningKeyRow, 'kid' | 'privateSealed'>): boolean {
    try {
      this.#deps.sealer.open(privateSealed, signingKeyOwner(kid))
      return true
    } catch {
      return false
    }
  }

  async #makeKey(): Promise<{ insert(tx: Tx, state: 'current' | 'next'): Promise<void> }> {
    const pair = await generateKeyPair(tokenAlgorithm, { extractable: true })
    const bare: JWK = await exportJWK(pair.publicKey)
    const kid = await calculateJwkThumbprint(bare)
    const shown = publicJwk.parse({ ...bare, kid, alg: tokenAlgorithm, use: 'sig' })
    const sealed = this.#deps.sealer.seal(JSON.stringify(await exportJWK(pair.privateKey)), signingKeyOwner(kid))
    return {
      async insert(tx, state) {
        await tx.exec(insertSigningKey, kid, state, JSON.stringify(shown), sealed)
      },
    }
  }
}

async function loadedKey(row: SigningKeyRow): Promise<LoadedKey> {
  const jwk = publicJwk.parse(row.publicJwk)
  return { kid: row.kid, state: row.state, jwk, verifying: await importJWK(jwk, tokenAlgorithm) }
}

/** Returns the name of the row that a sealed private key belongs to. */
export const signingKeyOwner = (kid: string): string => `signing_keys:${kid}`
