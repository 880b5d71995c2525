import { AgentRevokedError, BrigadeError } from './brigade-error.ts'
import { type AgentToken, type TokenMintOptions, tokenMint } from './token-mint.ts'
import type { TokenParams, TokenSource } from './token-source.ts'

/** The agent that needs tokens, and options. */
export interface AgentTokenOptions extends TokenMintOptions {
  /** Is called once, when the gateway says that the agent is revoked. The function can end the run. */
  readonly onRevoked?: ((error: AgentRevokedError) => void) | undefined
  /** Returns milliseconds of a clock that never jumps. Tests replace it. */
  readonly now?: (() => number) | undefined
}

/** Provides currently valid tokens of one agent. */
export interface AgentTokenProvider extends TokenSource {
  /** Returns the token of `getToken` with its expiry, agent and scope. */
  get(params?: TokenParams): Promise<AgentToken>
  /** Ends the provider permanently, after a reply of the gateway said that the agent is revoked. */
  noteRevoked(error: AgentRevokedError): void
  /** The error after which there are no more tokens. Null while there may be tokens. */
  readonly revoked: AgentRevokedError | null
}

interface Held {
  readonly token: AgentToken
  /** After this time, a new token is fetched in the background, while calls use the present token. */
  readonly refreshAtMs: number
  /** After this time, calls wait for the new token. */
  readonly mustAtMs: number
  readonly endsAtMs: number
}

/**
 * How long before its expiry a token is renewed. For a long-lived token, the time is a fifth of its life if that is longer. A token is never renewed
 * in the first half of its life.
 */
const earlyMs = 60_000
/** How long before its expiry a token is not used any more. It might expire on its way to the gateway. */
const mandatoryMs = 30_000
const backoffFirstMs = 500
const backoffMaxMs = 30_000
/** A longer wait that a reply asks for is reduced to this one. The reply may come from a proxy. */
const askedMaxMs = 15 * 60_000
/** Maximum number of tries of one call that has no valid token, and the longest wait between two tries. */
const attemptsMax = 3
const waitMaxMs = 5_000

/**
 * Returns a provider of tokens of one agent for as long as the program runs. All callers share one mint at a time. A new token is fetched before the
 * old token expires. While the gateway cannot mint, the old token is used until it expires. Once the agent is revoked, the provider sends no more
 * requests. There are no timers: a token is renewed when a caller asks for it. Throws TypeError for options that cannot work.
 */
export function createAgentTokenProvider(options: AgentTokenOptions): AgentTokenProvider {
  return new Provider(options)
}

class Provider implements AgentTokenProvider {
  readonly #mintOne: () => Promise<AgentToken>
  readonly #onRevoked: ((error: AgentRevokedError) => void) | undefined
  readonly #now: () => number
  #revoked: AgentRevokedError | null = null
  #held: Held | null = null
  #minting: Promise<AgentToken> | null = null
  #patient: Promise<AgentToken> | null = null
  #failures = 0
  #lastError: unknown = null
  /** The earliest time of the next try. */
  #notBeforeMs = Number.NEGATIVE_INFINITY

  constructor(options: AgentTokenOptions) {
    this.#mintOne = tokenMint(options)
    this.#onRevoked = options.onRevoked
    this.#now = options.now ?? (() => performance.now())
  }

  get revoked(): AgentRevokedError | null {
    return this.#revoked
  }

  async getToken(params?: TokenParams): Promise<string> {
    return (await this.get(params)).token
  }

  async get({ forceRefresh = false, refused }: TokenParams = {}): Promise<AgentToken> {
    if (this.#revoked !== null) throw this.#revoked
    const held = this.#held
    const now = this.#now()
    const isUnwanted = held === null || (forceRefresh && (refused === undefined || refused === held.token.token))
    if (isUnwanted || now >= held.endsAtMs) return this.#patiently()
    // The clock of `now` may not run while the machine sleeps, so the wall clock is checked too. If somebody changed the wall clock, one extra mint
    // follows.
    const hasSlept = Date.now() >= held.token.expiresAtMs
    if (now < held.refreshAtMs && !hasSlept) return held.token
    if (this.#minting === null && now < this.#notBeforeMs) return held.token
    const fresh = this.#mint()
    if (now >= held.mustAtMs || hasSlept) return fresh.catch(error => this.#stillGood(held, error))
    // The failure is remembered, and a caller that needs the token gets it then. This handler only prevents an unhandled rejection.
    fresh.catch(() => undefined)
    return held.token
  }

  noteRevoked(error: AgentRevokedError): void {
    if (this.#revoked !== null) return
    this.#revoked = error
    this.#held = null
    // An error of the callback, synchronous or later, must not let the run continue and must not end the program.
    new Promise(resolve => resolve(this.#onRevoked?.(error))).catch(() => undefined)
  }

  #stillGood(held: Held, error: unknown): AgentToken {
    if (this.#revoked !== null || this.#now() >= held.endsAtMs) throw error
    return held.token
  }

  /** Requests a token for calls that have none. It makes a few tries, at the pace that the gateway asks for. */
  #patiently(): Promise<AgentToken> {
    this.#patient ??= this.#tries().finally(() => {
      this.#patient = null
    })
    return this.#patient
  }

  async #tries(): Promise<AgentToken> {
    for (let attempt = 1; ; attempt++) {
      const waitMs = this.#notBeforeMs - this.#now()
      if (waitMs > waitMaxMs && isTransient(this.#lastError)) throw this.#lastError
      if (waitMs > 0 && isTransient(this.#lastError)) await new Promise(resolve => setTimeout(resolve, waitMs))
      try {
        return await this.#mint()
      } catch (error) {
        if (attempt >= attemptsMax || !isTransient(error)) throw error
      }
    }
  }

  #mint(): Promise<AgentToken> {
    this.#minting ??= this.#minted().finally(() => {
      this.#minting = null
    })
    return this.#minting
  }

  async #minted(): Promise<AgentToken> {
    if (this.#revoked !== null) throw this.#revoked
    const askedAtMs = this.#now()
    try {
      const token = await this.#mintOne()
      if (this.#revoked !== null) throw this.#revoked
      this.#held = heldFrom(token, askedAtMs)
      this.#failures = 0
      this.#lastError = null
      this.#notBeforeMs = Number.NEGATIVE_INFINITY
      return token
    } catch (error) {
      if (error instanceof AgentRevokedError) this.noteRevoked(error)
      this.#failures++
      this.#lastError = error
      this.#notBeforeMs = this.#now() + pauseMs(error, this.#failures)
      throw error
    }
  }
}

/** Returns the token with its times. Its life counts from the start of the request. A slow reply therefore never makes the token seem to live longer. */
function heldFrom(token: AgentToken, askedAtMs: number): Held {
  const lifeMs = token.expiresInS * 1000
  const endsAtMs = askedAtMs + lifeMs
  const jitter = 1 + Math.random() / 5
  return {
    token,
    refreshAtMs: endsAtMs - Math.min(Math.max(earlyMs, lifeMs / 5) * jitter, lifeMs / 2),
    mustAtMs: endsAtMs - Math.min(mandatoryMs, lifeMs / 4),
    endsAtMs,
  }
}

function pauseMs(error: unknown, failures: number): number {
  const asked = error instanceof BrigadeError && error.retryAfterS !== null ? Math.min(error.retryAfterS * 1000, askedMaxMs) : 0
  const backoff = Math.min(backoffFirstMs * 2 ** Math.min(failures - 1, 10), backoffMaxMs)
  return Math.max(asked, backoff * (0.75 + Math.random() / 2))
}

/** Returns whether a retry makes sense, because the gateway is overloaded or could not be reached. */
function isTransient(error: unknown): boolean {
  if (!(error instanceof BrigadeError)) return isNetworkFailure(error)
  if (error.shouldRetry !== null) return error.shouldRetry
  return error.status === 408 || error.status === 429 || error.status >= 500
}

/** Returns whether this is an error of fetch without a reply. An error of a credential function does not count. */
export function isNetworkFailure(error: unknown): boolean {
  return (
    error instanceof Error && ((error.name === 'TypeError' && /fetch|network|load failed|terminated/i.test(error.message)) || error.name === 'TimeoutError')
  )
}
