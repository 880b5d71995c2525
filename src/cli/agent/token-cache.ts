import { createHash } from 'node:crypto'
import { chmodSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Secret } from '../../platform/security/secret.ts'

/**
 * A token as it is stored in a file. The file contains no other secret. The API key that minted the token appears only in the file's name, as a hash.
 * Decision 0271 says why.
 */
export interface KeptToken {
  readonly access_token: string
  readonly base_url: string
  readonly agent_id: number | null
  readonly scope: string
  /** The times are by the clock of this computer. */
  readonly minted_at_ms: number
  readonly expires_at_ms: number
}

/** The parameters of a token. A cached token is used only for exactly the same parameters: credential, gateway and the rest. */
export interface TokenParams {
  readonly baseUrl: string
  readonly credential: Secret
  readonly agent: string
  readonly scope: string | undefined
  readonly ttlS: number | undefined
}

/** A token that has less life left than this is not returned. For a token with a short life, the limit is half of its life. */
const spareMs = 120_000
/** If the clock was set back by more than this, nobody knows the age of a token. */
const clockStepMs = 60_000
const nameShape = /^[0-9a-f]{64}\.json$/

/** Stores agent tokens of this user between runs of the command line. Any number of processes may use it concurrently. */
export class TokenCache {
  readonly #folder: string
  readonly #nowMs: () => number
  readonly #randomName: () => string

  /** `folder` is the folder of this user's settings. Tokens are in tokens/ below it. */
  constructor(folder: string, deps: { readonly nowMs: () => number; readonly randomName: () => string }) {
    this.#folder = join(folder, 'tokens')
    this.#nowMs = deps.nowMs
    this.#randomName = deps.randomName
  }

  /**
   * Returns a token for these parameters that has enough life left. Returns null when a new token must be minted. A file that does not contain a
   * token counts as missing.
   */
  find(params: TokenParams): KeptToken | null {
    const kept = readToken(this.#pathOf(params))
    return kept !== null && this.#isFresh(kept) ? kept : null
  }

  /**
   * Writes the token and deletes expired tokens. Only this user can read the file. The file is written completely or not at all. Throws errors of the
   * disk.
   */
  keep(params: TokenParams, token: KeptToken): void {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
    chmodSync(this.#folder, 0o700)
    const path = this.#pathOf(params)
    // Each writer uses its own file name, because two processes that write concurrently must not write into one file.
    const beside = `${path}.${this.#randomName()}`
    writeFileSync(beside, `${JSON.stringify(token)}\n`, { mode: 0o600, flag: 'wx' })
    try {
      renameSync(beside, path)
    } catch (thrown) {
      rmSync(beside, { force: true })
      throw thrown
    }
    this.#forget(kept => kept.expires_at_ms < this.#nowMs())
  }

  /** Deletes the token for these parameters, because the gateway refused it. */
  drop(params: TokenParams): void {
    rmSync(this.#pathOf(params), { force: true })
  }

  /** Deletes every token of this user and returns their number. Throws errors of the disk. */
  clear(): number {
    const names = filesIn(this.#folder)
    rmSync(this.#folder, { recursive: true, force: true })
    return names.length
  }

  /** Deletes the stored tokens of an agent that was revoked. */
  forgetAgent(baseUrl: string, agentId: number): void {
    this.#forget(kept => kept.base_url === baseUrl && kept.agent_id === agentId)
  }

  #forget(isOver: (kept: KeptToken) => boolean): void {
    for (const name of filesIn(this.#folder)) {
      const path = join(this.#folder, name)
      const kept = readToken(path)
      if (kept !== null && isOver(kept)) rmSync(path, { force: true })
    }
  }

  #isFresh({ minted_at_ms, expires_at_ms }: KeptToken): boolean {
    const now = this.#nowMs()
    return now >= minted_at_ms - clockStepMs && expires_at_ms - now > Math.min(spareMs, (expires_at_ms - minted_at_ms) / 2)
  }

  #pathOf({ baseUrl, credential, agent, scope, ttlS }: TokenParams): string {
    const cacheKey = JSON.stringify([baseUrl, credential.reveal(), agent, scope ?? null, ttlS ?? null])
    return join(this.#folder, `${createHash('sha256').update(cacheKey).digest('hex')}.json`)
  }
}

function filesIn(folder: string): string[] {
  try {
    return readdirSync(folder).filter(name => nameShape.test(name))
  } catch {
    return []
  }
}

function readToken(path: string): KeptToken | null {
  try {
    const kept = JSON.parse(readFileSync(path, 'utf8')) as Partial<KeptToken> | null
    const { access_token, base_url, agent_id = null, scope, minted_at_ms, expires_at_ms } = kept ?? {}
    if (typeof access_token !== 'string' || !/^[!-~]+$/.test(access_token) || typeof base_url !== 'string' || typeof scope !== 'string') return null
    if (typeof minted_at_ms !== 'number' || typeof expires_at_ms !== 'number') return null
    return { access_token, base_url, agent_id, scope, minted_at_ms, expires_at_ms }
  } catch {
    return null
  }
}
