/**
 * The price list and the exchange rate of third parties, stored in the database. All processes together try each source once in `everyMs`: only the
 * process that updates `tried_at` fetches. A source that nobody has used for a day is not fetched.
 */
import { createHash } from 'node:crypto'
import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import type { Log } from '../../../platform/observe/log.ts'
import type { Outbound } from '../../../platform/outbound/outbound.ts'
import { isObject, objectsOf } from '../../../platform/values/json.ts'
import { userAgent } from '../../providers/user-agent.ts'
import { claimFeed, deleteOldFeeds, type FeedRow, findFeeds, keepFeed, noteAsked } from './price-feed-queries.ts'
import { type ListedPrice, pricesOf, rateOf } from './price-sources.ts'

export interface PriceFeedsOptions {
  readonly db: Db
  readonly clock: Clock
  readonly log: Log
  readonly dial: Outbound['toProvider']
  /** The setting PRICE_FEED_URL. Null when the comparison is off. No source is then called. */
  readonly pricesUrl: string | null
  /** The setting FX_URL. */
  readonly rateUrl: string | null
  /** The setting PRICE_FEED_EVERY_S, in milliseconds. */
  readonly everyMs: number
}

/** The last fetched data of both sources. Null when a source was never fetched. */
export interface PriceFacts {
  readonly prices: { readonly list: readonly ListedPrice[]; readonly fetchedAtMs: number } | null
  readonly rate: { readonly inrPerUsd: string; readonly fetchedAtMs: number } | null
}

interface Source {
  readonly name: 'prices' | 'exchange_rate'
  readonly url: string
  /** Key of the row. A URL may contain a secret, so only its host is readable here. */
  readonly source: string
  read(reply: unknown): object
}

/** Interval of the job that keeps used sources fresh. */
export const priceFeedsEveryMs = 10 * 60_000
const dayMs = 24 * 3600_000
/** Minimum time between two updates of the time of the last use. */
const askedEveryMs = 30 * 60_000
const forgetAfterMs = 30 * dayMs
/** Maximum size of a reply, several times the size of such a list. The bound exists because parsing blocks this process. */
const replyMaxBytes = 8 * 1024 * 1024
const replyTimeoutMs = 15_000

export class PriceFeeds {
  readonly #options: PriceFeedsOptions
  /** Empty while the comparison is off. */
  readonly #sources: readonly Source[]

  constructor(options: PriceFeedsOptions) {
    this.#options = options
    const { pricesUrl, rateUrl } = options
    this.#sources =
      pricesUrl === null || rateUrl === null
        ? []
        : [
            { name: 'prices', url: pricesUrl, source: sourceName(pricesUrl), read: reply => ({ prices: pricesOf(reply) }) },
            { name: 'exchange_rate', url: rateUrl, source: sourceName(rateUrl), read: reply => ({ inr: rateOf(reply) }) },
          ]
  }

  get isOn(): boolean {
    return this.#sources.length > 0
  }

  /** Host of the price list. Null while the comparison is off. */
  get host(): string | null {
    const [prices] = this.#sources
    return prices === undefined ? null : new URL(prices.url).host
  }

  /** Fetches the sources that are due and returns the stored data. When a fetch fails, the stored data stays and the failure is logged. */
  async forReader(signal?: AbortSignal): Promise<PriceFacts> {
    if (!this.isOn) return { prices: null, rate: null }
    const rows = await this.#rows()
    const nowMs = this.#options.clock.nowMs()
    if (rows.some(({ askedAt }) => Math.abs(nowMs - askedAt.getTime()) > askedEveryMs))
      await this.#options.db.exec(
        noteAsked,
        this.#sources.map(({ source }) => source),
        new Date(nowMs),
      )
    return this.#factsOf((await this.#refresh(rows, signal)) ? await this.#rows() : rows)
  }

  /** Fetches the sources that are due, if the comparison was used within a day. The job calls it. */
  async keepFresh(signal: AbortSignal): Promise<void> {
    if (!this.isOn) return
    const rows = await this.#rows()
    const nowMs = this.#options.clock.nowMs()
    if (rows.some(({ askedAt }) => Math.abs(nowMs - askedAt.getTime()) < dayMs)) await this.#refresh(rows, signal)
  }

  #rows(): Promise<FeedRow[]> {
    return this.#options.db.many(
      findFeeds,
      this.#sources.map(({ source }) => source),
    )
  }

  /** Returns true when something was fetched. */
  async #refresh(rows: readonly FeedRow[], signal: AbortSignal | undefined): Promise<boolean> {
    const { clock, everyMs } = this.#options
    const nowMs = clock.nowMs()
    const isDue = (wanted: Source): boolean => {
      const row = rowOf(rows, wanted)
      return row === undefined || Math.abs(nowMs - row.triedAt.getTime()) >= everyMs
    }
    const fetched = await Promise.all(this.#sources.filter(isDue).map(source => this.#fetchOnce(source, signal)))
    return fetched.includes(true)
  }

  /** Returns false when another process fetches the source, or when the fetch fails. */
  async #fetchOnce(source: Source, signal: AbortSignal | undefined): Promise<boolean> {
    const { db, clock, log, everyMs } = this.#options
    const nowMs = clock.nowMs()
    if ((await db.exec(claimFeed, source.name, source.source, new Date(nowMs), new Date(nowMs - everyMs))) === 0) return false
    try {
      const content = source.read(await this.#get(source.url, signal))
      await db.exec(keepFeed, source.name, source.source, JSON.stringify(content), new Date(clock.nowMs()))
      await db.exec(deleteOldFeeds, new Date(nowMs - forgetAfterMs))
      return true
    } catch (error) {
      log.warn('price_feed_failed', { job: source.name, url: new URL(source.url).host, error })
      return false
    }
  }

  async #get(url: string, stop: AbortSignal | undefined): Promise<unknown> {
    const late = AbortSignal.timeout(replyTimeoutMs)
    const signal = stop === undefined ? late : AbortSignal.any([stop, late])
    const reply = await this.#options.dial({ method: 'GET', url, headers: { accept: 'application/json', 'user-agent': userAgent }, signal })
    if (reply.status !== 200) {
      reply.body.destroy()
      throw new Error(
        `it answers ${reply.status}${reply.status >= 300 && reply.status < 400 ? '; redirects are not followed, set the address that it leads to' : ''}`,
      )
    }
    return JSON.parse((await reply.body.buffer(replyMaxBytes)).toString('utf8'))
  }

  #factsOf(rows: readonly FeedRow[]): PriceFacts {
    const kept = (name: Source['name']): { content: Record<string, unknown>; fetchedAtMs: number } | null => {
      const source = this.#sources.find(each => each.name === name)
      const row = source === undefined ? undefined : rowOf(rows, source)
      return row !== undefined && row.fetchedAt !== null && isObject(row.content) ? { content: row.content, fetchedAtMs: row.fetchedAt.getTime() } : null
    }
    const prices = kept('prices')
    const rate = kept('exchange_rate')
    return {
      prices: prices === null ? null : { list: objectsOf(prices.content['prices']).flatMap(listedPrice), fetchedAtMs: prices.fetchedAtMs },
      rate: rate === null ? null : { inrPerUsd: String(rate.content['inr']), fetchedAtMs: rate.fetchedAtMs },
    }
  }
}

const rowOf = (rows: readonly FeedRow[], { name, source }: Source): FeedRow | undefined => rows.find(row => row.name === name && row.source === source)

const sourceName = (url: string): string => `${new URL(url).host} ${createHash('sha256').update(url).digest('hex').slice(0, 16)}`

function listedPrice({ id, input, output }: Record<string, unknown>): ListedPrice[] {
  return typeof id === 'string' && typeof input === 'string' && typeof output === 'string' ? [{ id, input, output }] : []
}
