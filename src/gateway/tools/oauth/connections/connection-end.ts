import type { Db, Tx } from '../../../../platform/db/db.ts'
import type { NewsItem } from '../../../../platform/db/db-control-log.ts'
import { toolConnectionEnded } from '../../registry/tool-news.ts'
import { deleteUnusedClient } from '../client-queries.ts'
import type { ServerOAuth } from '../server-oauth.ts'
import { claimEnded, deleteConnection, endConnectionsOfPerson } from './connection-queries.ts'

/** Ends every connection of a person whose membership ends, in the transaction that ends it. Returns the news, which cut running calls. */
export async function endConnectionsOf(tx: Tx, orgId: number, userId: number, now: Date): Promise<NewsItem[]> {
  const ended = await tx.many(endConnectionsOfPerson, orgId, userId, now)
  return ended.map(({ id }) => ({ kind: toolConnectionEnded, ref: id }))
}

/** How often a process looks for connections that ended while nobody was there to revoke them. */
export const endedSweepMs = 60_000
/** A process that dies leaves its connection to the others after this time. */
const leaseMs = 60_000
/** A run takes no further connection after this number. The rest is for the next run. */
const runMax = 200

/**
 * Revokes the tokens of ended connections at their issuers, and deletes the connections. The revocation is tried once, because the issuer may not offer it.
 */
export class EndedConnections {
  readonly #db: Db
  readonly #oauth: Pick<ServerOAuth, 'revoke'>
  #running: Promise<void> | null = null
  #isAgain = false

  constructor(db: Db, oauth: Pick<ServerOAuth, 'revoke'>) {
    this.#db = db
    this.#oauth = oauth
  }

  /** Begins a run soon after a connection ended. It never throws. */
  kick(): void {
    this.#isAgain = true
    this.#running ??= this.#runs().finally(() => {
      this.#running = null
    })
  }

  /** Revokes and deletes the connections that have ended. */
  async run(signal?: AbortSignal): Promise<void> {
    for (let count = 0; count < runMax && signal?.aborted !== true; count++) {
      const row = await this.#db.maybe(claimEnded, leaseMs)
      if (row === null) return
      await this.#oauth.revoke(row)
      await this.#db.exec(deleteConnection, row.orgId, row.id)
      await this.#db.exec(deleteUnusedClient, row.orgId, row.serverId)
    }
  }

  async #runs(): Promise<void> {
    while (this.#isAgain) {
      this.#isAgain = false
      // The job comes back to what a failing database leaves.
      await this.run().catch(() => undefined)
    }
  }
}
