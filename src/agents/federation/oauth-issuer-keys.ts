import { createLocalJWKSet, type JWK } from 'jose'
import { z } from 'zod'
import type { Clock } from '../../platform/clock.ts'
import { fail, GatewayError } from '../../platform/errors.ts'
import type { Log } from '../../platform/observe/log.ts'
import type { Outbound } from '../../platform/outbound/outbound.ts'
import { FounderPlaces } from './founder-places.ts'
import { isCheapKey, keysTextMax, publicKey } from './trust-checks.ts'

/** The place of an issuer's keys: the URL that its discovery document names, or a given URL. */
export type KeySource = { readonly issuer: string } | { readonly jwksUri: string }

/** The keys as a look-up function for jose. */
export type KeySet = ReturnType<typeof createLocalJWKSet>

export interface IssuerKeysDeps {
  readonly clock: Clock
  readonly log: Log
  /** Sends requests to addresses that users give. The addresses are checked, and redirects are not followed. */
  readonly outbound: Pick<Outbound, 'toUserUrl'>
  /** Returns the founder of an organisation. Returns null when the organisation does not exist. May ask the database. */
  readonly founderOf: (orgId: number) => string | null | Promise<string | null>
}

/** How long cached keys are used before the gateway fetches them again. */
const freshMs = 10 * 60_000
/** The maximum age of keys while the issuer does not answer. */
const staleMaxMs = 60 * 60_000
/** How long the gateway waits after a failed fetch before it asks the issuer again. */
const coolDownMs = 10_000
/** The minimum time between two requests that unknown key ids cause, so that invented ids do not make the gateway call the issuer. */
const refetchMs = 30_000
const timeoutMs = 5_000
/** The deadline of the whole request. `timeoutMs` alone would not end a reply whose bytes arrive slowly. */
const deadlineMs = 10_000
const discoveryMaxBytes = 64 * 1024
const keysMaxBytes = 256 * 1024
const keysMax = 100
/** The maximum number of sources whose keys are cached. The organisations of one founder have at most the given percentage of those that others leave free. */
const sourcesMax = 1_000
const founderPercent = 50

const discovery = z.looseObject({ issuer: z.string(), jwks_uri: z.string() })
const keySet = z.object({ keys: z.array(z.unknown()).max(keysMax) })

interface Source {
  set: KeySet | null
  loadedAtMs: number
  failedAtMs: number
  loading: Promise<KeySet> | null
}

/**
 * The public keys of other issuers. Concurrent callers share one fetch. Keys are cached, and fetched again when a token names an unknown key id. The
 * places of the cache are divided by founder of the organisations whose rules name the sources.
 */
export class IssuerKeys {
  readonly #deps: IssuerKeysDeps
  readonly #sources = new FounderPlaces<Source>(sourcesMax, founderPercent)

  constructor(deps: IssuerKeysDeps) {
    this.#deps = deps
  }

  /**
   * Returns the keys, for a rule of this organisation. Throws `issuer_unavailable` when no keys are cached and the issuer does not send any. Throws
   * DatabaseUnavailableError.
   */
  async of(source: KeySource, orgId: number): Promise<KeySet> {
    const state = await this.#stateOf(source, orgId)
    const ageMs = this.#nowMs - state.loadedAtMs
    if (state.set !== null && ageMs < freshMs) return state.set
    try {
      return await this.#load(source, state)
    } catch (error) {
      if (state.set !== null && ageMs < staleMaxMs) return state.set
      throw error
    }
  }

  /**
   * Fetches the keys again, for a token whose key is not among the cached keys. Returns null when the cached keys are too young to have changed, or
   * when the issuer does not answer.
   */
  async again(source: KeySource, orgId: number): Promise<KeySet | null> {
    const state = await this.#stateOf(source, orgId)
    if (state.loading === null && this.#nowMs - state.loadedAtMs < refetchMs) return null
    return this.#load(source, state).catch(() => null)
  }

  get #nowMs(): number {
    return this.#deps.clock.monotonicMs()
  }

  async #stateOf(source: KeySource, orgId: number): Promise<Source> {
    const key = 'issuer' in source ? `issuer ${source.issuer}` : `keys ${source.jwksUri}`
    const known = this.#sources.get(key)
    if (known !== undefined) return known
    const founder = (await this.#deps.founderOf(orgId)) ?? String(orgId)
    // Another caller may have added it meanwhile.
    const added = this.#sources.get(key)
    if (added !== undefined) return added
    const made: Source = { set: null, loadedAtMs: Number.NEGATIVE_INFINITY, failedAtMs: Number.NEGATIVE_INFINITY, loading: null }
    this.#sources.add(key, founder, made)
    return made
  }

  async #load(source: KeySource, state: Source): Promise<KeySet> {
    if (state.loading === null && this.#nowMs - state.failedAtMs < coolDownMs) throw unavailable()
    state.loading ??= this.#fetch(source)
      .then(set => {
        state.set = set
        state.loadedAtMs = this.#nowMs
        return set
      })
      .catch((error: unknown) => {
        state.failedAtMs = this.#nowMs
        this.#deps.log.warn('issuer_keys_unavailable', { url: 'issuer' in source ? source.issuer : source.jwksUri, error })
        throw error instanceof GatewayError && error.errorName === 'issuer_unavailable' ? error : unavailable(error)
      })
      .finally(() => {
        state.loading = null
      })
    return state.loading
  }

  async #fetch(source: KeySource): Promise<KeySet> {
    const deadline = new AbortController()
    const cancel = this.#deps.clock.after(deadlineMs, () => deadline.abort(new Error('the issuer took too long')))
    try {
      const found = keySet.parse(
        await this.#json('issuer' in source ? await this.#keysUrl(source.issuer, deadline.signal) : source.jwksUri, keysMaxBytes, deadline.signal),
      )
      return createLocalJWKSet({ keys: keptKeys(found.keys) })
    } finally {
      cancel()
    }
  }

  /** Returns the URL of the keys from the discovery document. The document must name the requested issuer. */
  async #keysUrl(issuer: string, signal: AbortSignal): Promise<string> {
    const found = discovery.parse(await this.#json(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, discoveryMaxBytes, signal))
    if (found.issuer !== issuer) throw new Error('the discovery document is that of another issuer')
    return found.jwks_uri
  }

  async #json(url: string, maxBytes: number, signal: AbortSignal): Promise<unknown> {
    const headers = { accept: 'application/json', 'user-agent': 'brigade' }
    const reply = await this.#deps.outbound.toUserUrl({ method: 'GET', url, headers, headersTimeoutMs: timeoutMs, bodyTimeoutMs: timeoutMs, signal })
    if (reply.status !== 200) {
      reply.body.destroy()
      throw new Error(`answered ${reply.status}`)
    }
    return JSON.parse((await reply.body.buffer(maxBytes)).toString('utf8'))
  }
}

/**
 * Returns the public keys of a set, with only the fields that verification needs. Other members of a key may need many times their length in memory, and
 * the keys stay in memory. Leaves out keys that cannot verify, because a set may also contain keys for other purposes. Throws when the kept keys are
 * longer than `keysTextMax`.
 */
function keptKeys(keys: readonly unknown[]): JWK[] {
  const kept = keys.map(key => publicKey.safeParse(key).data).filter(key => key !== undefined && isCheapKey(key))
  const text = JSON.stringify(kept)
  if (text.length > keysTextMax) throw new Error(`the public keys have more than ${keysTextMax} characters together`)
  return JSON.parse(text) as JWK[]
}

const unavailable = (cause?: unknown): GatewayError =>
  fail('issuer_unavailable', { retryAfterSeconds: coolDownMs / 1000, ...(cause === undefined ? {} : { cause }) })
