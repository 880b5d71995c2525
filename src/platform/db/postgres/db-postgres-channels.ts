import type { Client } from 'pg'
import type { Clock } from '../../clock.ts'
import type { Log } from '../../observe/log.ts'
import { DatabaseUnavailableError } from '../db.ts'
import { checkedChannel, Listeners, translateError } from '../db-session.ts'

const firstRetryMs = 100
const longestRetryMs = 5000
/** How often the listening connection is tested. A half-open connection would otherwise stay silent forever. */
const heartbeatMs = 5000

/**
 * Runs LISTEN on a connection of its own, which is opened at the first use. A lost connection is opened again, with growing pauses. LISTEN runs again for
 * all channels before `onReconnect` is called, so that no notification is lost in between.
 */
export class PostgresChannels {
  readonly #makeClient: () => Client
  readonly #clock: Clock
  readonly #log: Log
  readonly #listeners = new Listeners()
  readonly #stop = new AbortController()
  #client: Promise<Client> | null = null
  #reconnecting: Promise<void> | null = null

  constructor(makeClient: () => Client, clock: Clock, log: Log) {
    this.#makeClient = makeClient
    this.#clock = clock
    this.#log = log
  }

  /** Resolves when the server listens. Throws DatabaseUnavailableError when there is no connection now. */
  async listen(channel: string, fn: (payload: string) => void, onReconnect?: () => void): Promise<() => Promise<void>> {
    const name = checkedChannel(channel)
    const added = this.#listeners.add(name, fn, onReconnect)
    try {
      // A repeated LISTEN is harmless. Every caller sends its own LISTEN, so that it returns only when LISTEN is in force.
      const client = await this.#connected()
      await client.query(`listen "${name}"`)
    } catch (error) {
      added.remove()
      throw translateError(error)
    }
    return async () => {
      if (!added.remove() || this.#client === null) return
      // If the connection is lost, nothing needs to be done, because the next connection does not listen to this channel.
      await this.#client.then(client => client.query(`unlisten "${name}"`)).catch(() => {})
    }
  }

  #connected(): Promise<Client> {
    if (this.#stop.signal.aborted) return Promise.reject(new DatabaseUnavailableError('the database is closed'))
    if (this.#client === null) {
      const attempt = this.#connect()
      this.#client = attempt
      attempt.catch(() => {
        if (this.#client === attempt) this.#client = null
      })
    }
    return this.#client
  }

  async #connect(): Promise<Client> {
    const client = this.#makeClient()
    let stopHeartbeat = (): void => {}
    let isLost = false
    const lost = (error?: Error): void => {
      if (isLost) return
      isLost = true
      stopHeartbeat()
      this.#lost(client, error)
    }
    client.on('error', lost)
    client.on('notification', message => this.#listeners.dispatch(message.channel, message.payload ?? ''))
    await client.connect()
    client.on('end', () => lost())
    for (const channel of this.#listeners.channels) await client.query(`listen "${channel}"`)
    if (isLost) throw new DatabaseUnavailableError('the listening connection was lost immediately')
    stopHeartbeat = this.#clock.every(heartbeatMs, () => {
      client.query('select 1').catch(lost)
    })
    this.#stop.signal.addEventListener('abort', stopHeartbeat, { once: true })
    return client
  }

  #lost(client: Client, error: Error | undefined): void {
    if (this.#stop.signal.aborted) return
    this.#log.warn('database_listen_lost', error === undefined ? {} : { error })
    void client.end().catch(() => {})
    if (this.#client === null) return
    this.#client = null
    this.#reconnecting ??= this.#reconnect().finally(() => {
      this.#reconnecting = null
    })
  }

  async #reconnect(): Promise<void> {
    for (let pauseMs = firstRetryMs; !this.#stop.signal.aborted; pauseMs = Math.min(pauseMs * 2, longestRetryMs)) {
      try {
        await this.#clock.sleep(pauseMs, this.#stop.signal)
        if (this.#listeners.channels.length === 0) return
        await this.#connected()
        this.#log.info('database_listen_restored')
        this.#listeners.reconnected()
        return
      } catch {
        // The database is still unavailable, or the channels are closing. The condition of the loop distinguishes the two.
      }
    }
  }

  async close(): Promise<void> {
    this.#stop.abort()
    await this.#client?.then(client => client.end()).catch(() => {})
    await this.#reconnecting
  }
}
