import { AgentRevokedError, BrigadeError } from './brigade-error.ts'
import { type AgentToken, type TokenMintOptions, tokenMint } from './token-mint.ts'
import type { TokenParams, TokenSource } from './token-source.ts'

/** The agent whose tokens to provide, and options. */
export interface AgentTokenOptions extends TokenMintOptions {
  /** Called once, when the gateway says that the agent is revoked: the place to end the run. */
  readonly onRevoked?: ((error: AgentRevokedError) => void) | undefined
  /** Milliseconds of a clock that never jumps; for tests. */
  readonly now?: (() => number) | undefined
}

/** Provides tokens of one agent that are valid now. */
export interface AgentTokenProvider extends TokenSource {
  /** The token of `getToken`, with its end, its agent and its scope. */
  get(params?: TokenParams): Promise<AgentToken>
  /** Ends the provider permanently: some reply of the gateway said that the agent is revoked. */
  noteRevoked(error: AgentRevokedError): void
  /** Why there will be no more tokens; null while there may be. */
  readonly revoked: AgentRevokedError | null
}

interface Held {
  readonly token: AgentToken
  /** From this time on a new token is fetched in the background while calls use this one. */
  readonly refreshAtMs: number
  /** From this time on calls wait for the new token. */
  readonly mustAtMs: number
  readonly endsAtMs: number
}

/** A new token is fetched this long before the end, or a fifth of its life if that is more, but never in its first half. */
const earlyMs = 60_000
/** A token may be too old when the gateway reads it, from this long before its end. */
const mandatoryMs = 30_000
const backoffFirstMs = 500
const backoffMaxMs = 30_000
/** The longest life that is believed: a page of a proxy may answer with a longer one. */
const askedMaxMs = 15 * 60_000
/** The most tries of one call that has no valid token, and the longest wait between two. */
const attemptsMax = 3
const waitMaxMs = 5_000

/**
 * Provides tokens of an agent for as long as a program runs. One mint runs at a time for all callers. A new token is there before the old one ends.
 * While the gateway cannot mint, the old token is used until it ends. Once the agent is revoked, the provider sends nothing more. There are no timers: a
 * token is renewed when a caller asks for it. Throws TypeError for options that cannot work.
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
    // The other clock does not run while the machine sleeps. This clock may also have been set, which costs no more than a mint.
    const hasSlept = Date.now() >= held.token.expiresAtMs
    if (now < held.refreshAtMs && !hasSlept) return held.token
    if (this.#minting === null && now < this.#notBeforeMs) return held.token
    const fresh = this.#mint()
    if (now >= held.mustAtMs || hasSlept) return fresh.catch(error => this.#stillGood(held, error))
    // A caller that needs the outcome asks again; a failure is remembered for it.
    fresh.catch(() => undefined)
    return held.token
  }

  noteRevoked(error: AgentRevokedError): void {
    if (this.#revoked !== null) return
    this.#revoked = error
    this.#held = null
    // An error of a callback, now or later, neither lets the run continue nor ends the program with another error.
    new Promise(resolve => resolve(this.#onRevoked?.(error))).catch(() => undefined)
  }

  #stillGood(held: Held, error: unknown): AgentToken {
    if (this.#revoked !== null || this.#now() >= held.endsAtMs) throw error
    return held.token
  }

  /** For calls without any token: makes a few tries, at the pace that the gateway asks for. */
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

/** The life counts from before the request, so that the duration of the reply is never added to it. */
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

/** Whether a retry makes sense: the gateway is overloaded, or could not be reached. */
function isTransient(error: unknown): boolean {
  if (!(error instanceof BrigadeError)) return isNetworkFailure(error)
  if (error.shouldRetry !== null) return error.shouldRetry
  return error.status === 408 || error.status === 429 || error.status >= 500
}

/** An error of fetch without a reply, but not an error of a credential function. */
export function isNetworkFailure(error: unknown): boolean {
  return (
    error instanceof Error && ((error.name === 'TypeError' && /fetch|network|load failed|terminated/i.test(error.message)) || error.name === 'TimeoutError')
  )
}
