import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import type { ControlLog } from '../../../platform/db/db-control-log.ts'
import { fail } from '../../../platform/errors.ts'
import type { SessionPrincipal } from '../../../platform/security/principal.ts'
import { sessionEnded } from '../sessions.ts'
import { endOtherSessions, endOwnSession, type ListedSession, listSessions } from './session-list-queries.ts'

export interface OwnSessionsDeps {
  readonly db: Db
  readonly clock: Clock
  readonly controlLog: ControlLog
}

/** Maximum number of sessions in a list. The current one is always in it. */
export const sessionsListedMax = 200
/** Number of sessions that one transaction ends. Each is a row of news. */
const endedTogetherMax = 500
/** Maximum number of such transactions of one request. */
const roundsMax = 20

/** The sessions of one person, whichever organisations they are in. A person sees and ends only their own. */
export class OwnSessions {
  readonly #deps: OwnSessionsDeps

  constructor(deps: OwnSessionsDeps) {
    this.#deps = deps
  }

  /** Returns the current session and then the others, newest first, at most `sessionsListedMax`. */
  list({ userId, sessionId }: SessionPrincipal): Promise<ListedSession[]> {
    return this.#deps.db.many(listSessions, userId, hashOf(sessionId), new Date(this.#deps.clock.nowMs()), sessionsListedMax)
  }

  /** Ends one session. Returns whether it is the current one. Throws `not_found` also for a session of another person. */
  async end({ userId, sessionId }: SessionPrincipal, id: number): Promise<{ isCurrent: boolean }> {
    const { controlLog, clock } = this.#deps
    const ended = await controlLog.change(async tx => {
      const row = await tx.maybe(endOwnSession, userId, id, new Date(clock.nowMs()))
      return { value: row, news: row === null ? [] : [sessionEnded(idOf(row.idHash))] }
    })
    if (ended === null) throw fail('not_found', { message: 'You have no session of that id. GET /me/sessions lists yours.' })
    return { isCurrent: idOf(ended.idHash) === sessionId }
  }

  /** Ends every session of the person except the current one. Returns their number. */
  async endOthers({ userId, sessionId }: SessionPrincipal): Promise<number> {
    const { controlLog, clock } = this.#deps
    let count = 0
    for (let round = 0; round < roundsMax; round++) {
      const ended = await controlLog.change(async tx => {
        const rows = await tx.many(endOtherSessions, userId, hashOf(sessionId), new Date(clock.nowMs()), endedTogetherMax)
        return { value: rows.length, news: rows.map(row => sessionEnded(idOf(row.idHash))) }
      })
      count += ended
      if (ended < endedTogetherMax) break
    }
    return count
  }
}

/** The id of a session in this process is the base64 of the hash. */
const idOf = (hash: Buffer): string => Buffer.from(hash).toString('base64')
const hashOf = (sessionId: string): Buffer => Buffer.from(sessionId, 'base64')
