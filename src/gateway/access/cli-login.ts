import { timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db/db.ts'
import type { Call } from '../../platform/endpoint.ts'
import { fail } from '../../platform/errors.ts'
import type { SessionPrincipal } from '../../platform/security/principal.ts'
import { hashKey } from '../../platform/security/secrets.ts'
import type { Ids } from '../../platform/values/ids.ts'
import type { AuditTrail } from '../audit/audit.ts'
import type { CreatedKey } from '../keys/key-writes.ts'
import type { Keys } from '../keys/keys.ts'
import { membershipOf } from '../orgs/members/membership.ts'
import { deleteOldCodes, insertCode, takeCode } from './sign-in/sign-in-queries.ts'

export interface CliLoginDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly keys: Keys
  readonly audit: AuditTrail
}

/**
 * The command line that waits for a code: its port and state, and its challenge. The challenge is the SHA-256 (base64url) of a verifier that only the
 * command line knows. Decision 0104 says why.
 */
export interface Waiting {
  readonly port: number
  readonly state: string
  readonly challenge: string
}

/** Number of random bytes in the name of a key, so that two keys of the same day have different names. */
const nameBytes = 4
const codeBytes = 32
/** The time from the click to the fetch of the key. It is short, because the command line is already waiting for the code. */
const codeLifeMs = 60_000
/** The life of a key that the command line got through the browser. A person who needs the key for longer signs in again. */
export const cliKeyDays = 90
const notValid = 'This code was used already, has run out, or is not for this verifier. Run brigade login again.'
const notMember = 'The person of this code does not belong to the organisation any more. Sign in again and run brigade login again.'

/**
 * Gives a key to the command line on the same computer as the browser. A one-time code goes through the browser, and the verifier of the command line
 * fetches the key.
 */
export class CliLogin {
  readonly #deps: CliLoginDeps
  constructor(deps: CliLoginDeps) {
    this.#deps = deps
  }

  /**
   * Makes a code for a signed-in person in that person's current organisation. Returns the address on this computer to which the browser carries the
   * code.
   */
  async grant({ orgId, userId }: SessionPrincipal, { port, state, challenge }: Waiting): Promise<string> {
    const { db, clock, ids } = this.#deps
    const code = ids.secret('', codeBytes)
    await db.exec(insertCode, hashKey(code), orgId, userId, challenge, new Date(clock.nowMs() + codeLifeMs))
    return `http://127.0.0.1:${port}/callback?${new URLSearchParams({ code, state })}`
  }

  /**
   * Makes a full key that expires, for the holder of the code and its verifier. The first attempt uses up the code, even with a wrong verifier.
   * Throws `bad_request`, also when the person has left the organisation in the meantime. Decision 0464 says why.
   */
  async redeem(code: string, verifier: string, call: Pick<Call, 'requestId' | 'clientIp'>): Promise<CreatedKey> {
    const { db, clock, ids, keys, audit } = this.#deps
    const taken = await db.maybe(takeCode, hashKey(code), new Date(clock.nowMs()))
    if (taken === null || !isSame(hashKey(verifier).toString('base64url'), taken.challenge)) throw fail('bad_request', { message: notValid })
    const { orgId, userId } = taken
    const day = new Date(clock.nowMs()).toISOString().slice(0, 10)
    const name = `CLI ${day} ${ids.secret('', nameBytes)}`
    const made = await keys.create(
      { orgId, userId, workspaceId: null, name, scope: 'full', expiresDays: cliKeyDays },
      {
        // Both the creation of a key and the removal of a member lock the row of the organisation. So one of them always happens before the other.
        async also(tx) {
          if ((await membershipOf(tx, orgId, userId)) === null) throw fail('bad_request', { message: notMember })
          return []
        },
      },
    )
    const actor: SessionPrincipal = { kind: 'session', orgId, userId, role: 'member', capabilities: [], email: '', sessionId: '' }
    await audit.record({ orgId, actor, act: 'cliLogin', target: `key=${made.id}`, sourceIp: call.clientIp(), requestId: call.requestId }, 'ok')
    return made
  }

  /** Deletes codes that were never used. Returns their number. */
  async sweep(): Promise<number> {
    return this.#deps.db.exec(deleteOldCodes, new Date(this.#deps.clock.nowMs()))
  }
}

/** Returns the path of the hand-over page, to which the browser returns after sign-in. All values are safe in a URL, so they are not escaped. */
export function cliLoginPath({ port, state, challenge }: Waiting): string {
  return `/cli/login?port=${port}&state=${state}&code_challenge=${challenge}&code_challenge_method=S256`
}

function isSame(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}
