/**
 * The keys that sign attestations. Each key has two halves. The first is an Ed25519 pair, whose public part lets anybody check a signature. The
 * second is a secret for an additional HMAC.
 */
import { createHash, createHmac, createPrivateKey, createPublicKey, generateKeyPairSync, sign, timingSafeEqual, verify } from 'node:crypto'
import { z } from 'zod'
import type { Clock } from '../../../platform/clock.ts'
import type { Db, Tx } from '../../../platform/db/db.ts'
import type { ControlLog } from '../../../platform/db/db-control-log.ts'
import { fail } from '../../../platform/errors.ts'
import { ExpiringCache } from '../../../platform/loop/expiring-cache.ts'
import type { Sealer } from '../../../platform/security/secrets.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import { type AttestationKeyRow, findCurrentKey, findHmacKey, insertKey, listPublicKeys, retireCurrentKey } from '../queries.ts'
import { thumbprintOf } from './thumbprint.ts'

/** A published key (RFC 8037). Its `kid` is its thumbprint (RFC 7638). */
export const publicJwk = z.object({
  kty: z.literal('OKP'),
  crv: z.literal('Ed25519'),
  x: z.string(),
  kid: z.string(),
  alg: z.literal('EdDSA'),
  use: z.literal('sig'),
})
export type PublicJwk = z.output<typeof publicJwk>

/** The two signatures over the same bytes. */
export interface Signatures {
  readonly hmac: { readonly keyId: string; readonly signature: string }
  readonly ed25519: { readonly keyId: string; readonly signature: string }
}

export interface AttestationKeysDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly sealer: Sealer
  readonly controlLog: ControlLog
  readonly cacheTtlMs: number
}

const notOpened =
  'This gateway cannot sign attestations: their key was sealed under another MASTER_KEY. The operator has to put that one back, or run brigade admin rotate-attestation-key.'
const keysChanged = 'attestation_keys_changed'
const secretBytes = 32

/**
 * The keys that sign and check attestations. One key is current. Older keys still verify, and their public parts stay published permanently. The
 * first use creates a key. When several processes try this concurrently, a unique index lets one of them insert its key, and the others read that
 * key.
 */
export class AttestationKeys {
  readonly #deps: AttestationKeysDeps
  readonly #published: ExpiringCache<string, readonly PublicJwk[]>

  constructor(deps: AttestationKeysDeps) {
    this.#deps = deps
    this.#published = new ExpiringCache({ max: 1, ttlMs: deps.cacheTtlMs, clock: deps.clock, load: () => this.#load() })
    deps.controlLog.on(news => {
      if (news.kind === keysChanged) this.#published.clear()
    })
    deps.controlLog.onGap(() => this.#published.clear())
  }

  /**
   * Signs with the current key. Throws `internal_error` with the reason when the key was sealed under another master key. It never returns a wrong
   * signature.
   */
  async sign(bytes: Buffer): Promise<Signatures> {
    const row = await this.#current()
    const [privateKey, hmacKey] = this.#openedBoth(row)
    const signature = sign(null, bytes, privateKey)
    const publicKey = createPublicKey({ key: publicJwk.parse(row.publicKey), format: 'jwk' })
    if (!verify(null, bytes, publicKey, signature)) throw fail('internal_error', { message: 'The key of attestations does not belong to its public half.' })
    return {
      hmac: { keyId: row.hmacKeyId, signature: hmacOf(hmacKey, bytes).toString('hex') },
      ed25519: { keyId: row.keyId, signature: signature.toString('base64url') },
    }
  }

  /** Returns whether the HMAC belongs to these bytes, or null when no key has that id. Throws `internal_error` when the key cannot be opened. */
  async checkHmac(hmacKeyId: string, signature: string, bytes: Buffer): Promise<boolean | null> {
    const row = await this.#deps.db.maybe(findHmacKey, hmacKeyId)
    if (row === null) return null
    const expected = hmacOf(this.#openedHmac(row), bytes)
    const given = /^[0-9a-f]{64}$/.test(signature) ? Buffer.from(signature, 'hex') : Buffer.alloc(expected.length)
    return timingSafeEqual(expected, given)
  }

  /** Returns the public parts of all keys that ever signed, newest first. */
  async published(): Promise<readonly PublicJwk[]> {
    return (await this.#published.get('all')) ?? []
  }

  /** Creates a new current key and returns the ids of its two halves. It works even when the old key cannot be opened. */
  async rotate(): Promise<{ keyId: string; hmacKeyId: string }> {
    const made = this.#newKey()
    const row = await this.#deps.controlLog.change(async tx => {
      await tx.exec(retireCurrentKey, new Date(this.#deps.clock.nowMs()))
      await made(tx)
      return { value: await tx.one(findCurrentKey), news: [{ kind: keysChanged, ref: '' }] }
    })
    this.#published.clear()
    return { keyId: row.keyId, hmacKeyId: row.hmacKeyId }
  }

  /** Returns true when the master key of this process opens the current key, and when there is no current key. */
  async isOpened(): Promise<boolean> {
    const row = await this.#deps.db.maybe(findCurrentKey)
    if (row === null) return true
    try {
      this.#openedBoth(row)
      return true
    } catch {
      return false
    }
  }

  async #load(): Promise<readonly PublicJwk[]> {
    await this.#current()
    return (await this.#deps.db.many(listPublicKeys)).map(row => publicJwk.parse(row.publicKey))
  }

  async #current(): Promise<AttestationKeyRow> {
    const { db, controlLog } = this.#deps
    const found = await db.maybe(findCurrentKey)
    if (found !== null) return found
    const made = this.#newKey()
    return controlLog.change(async tx => {
      await made(tx)
      return { value: await tx.one(findCurrentKey), news: [{ kind: keysChanged, ref: '' }] }
    })
  }

  /** Makes a key. Returns the function that inserts the key if no key is current. */
  #newKey(): (tx: Tx) => Promise<void> {
    const { sealer, ids, clock } = this.#deps
    const { publicKey, privateKey } = generateKeyPairSync('ed25519')
    const { x = '' } = publicKey.export({ format: 'jwk' })
    const keyId = thumbprintOf(x)
    const jwk: PublicJwk = { kty: 'OKP', crv: 'Ed25519', x, kid: keyId, alg: 'EdDSA', use: 'sig' }
    const hmacKey = ids.secret('', secretBytes)
    const sealedPrivateKey = sealer.seal(JSON.stringify(privateKey.export({ format: 'jwk' })), sealedFor(keyId, 'private_key'))
    const sealedHmacKey = sealer.seal(hmacKey, sealedFor(keyId, 'hmac_key'))
    return async tx => {
      await tx.exec(insertKey, keyId, JSON.stringify(jwk), sealedPrivateKey, hmacKeyIdOf(hmacKey), sealedHmacKey, new Date(clock.nowMs()))
    }
  }

  #openedBoth(row: AttestationKeyRow): [privateKey: ReturnType<typeof createPrivateKey>, hmacKey: string] {
    const text = this.#opened(row.sealedPrivateKey, sealedFor(row.keyId, 'private_key'))
    return [createPrivateKey({ key: privateJwk.parse(JSON.parse(text)), format: 'jwk' }), this.#openedHmac(row)]
  }

  #openedHmac(row: AttestationKeyRow): string {
    return this.#opened(row.sealedHmacKey, sealedFor(row.keyId, 'hmac_key'))
  }

  #opened(sealed: string, associatedData: string): string {
    try {
      return this.#deps.sealer.open(sealed, associatedData)
    } catch (cause) {
      throw fail('internal_error', { message: notOpened, cause })
    }
  }
}

const privateJwk = z.object({ kty: z.literal('OKP'), crv: z.literal('Ed25519'), x: z.string(), d: z.string() })

/** Returns the associated data that ties a sealed value to its row and column. A value that is copied elsewhere cannot be opened. */
const sealedFor = (keyId: string, part: 'private_key' | 'hmac_key'): string => `attestation_keys:${keyId}:${part}`

const hmacOf = (key: string, bytes: Buffer): Buffer => createHmac('sha256', Buffer.from(key, 'base64url')).update(bytes).digest()

/** Returns the id of a secret of 256 random bits. Nobody can derive the secret from the id. */
const hmacKeyIdOf = (key: string): string => createHash('sha256').update(`brigade:attestation-hmac:${key}`).digest('hex').slice(0, 32)
