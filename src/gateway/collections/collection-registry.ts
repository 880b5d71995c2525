/** The public registry of collections. The gateway builds its pages outside the requests that read them. It builds a page again when a collection changes. */
import { LRUCache } from 'lru-cache'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db/db.ts'
import type { ControlLog } from '../../platform/db/db-control-log.ts'
import { fail } from '../../platform/errors.ts'
import { Snapshot } from '../../platform/loop/snapshot.ts'
import type { Log } from '../../platform/observe/log.ts'
import { type PublicPage, publicPage } from '../../platform/public-page.ts'
import { isObject } from '../../platform/values/json.ts'
import { listStarred } from './collection-queries.ts'
import { isSlug } from './collection-slug.ts'
import { listedJson, publicJson, publicVersionsJson } from './collection-views.ts'
import { collectionChanged, noCollection, versionsListedMax } from './collections.ts'
import { findPublic, listPublic, listPublicOfModel, listPublicVersions } from './registry-queries.ts'

/** Maximum number of collections in a list. */
export const listedMax = 200
/** Characters of each readme in a list. */
const listedReadmeMax = 2_000
/**
 * Age after which a page is built again, in milliseconds. A change by another process or by monitoring is visible within ten times this age. An edit
 * is visible immediately.
 */
const pageAgeMs = 4_000
/** How long browsers and proxies may cache a page. */
const cachedSeconds = 10
/** Maximum number of cached pages of single collections. A page may have some hundred kilobytes, but most pages have less than one kilobyte. */
const pagesMax = 200
/** Maximum number of cached lists: the list of all collections, and one list for each requested model. */
const listsMax = 100

interface Page {
  readonly page: PublicPage
  /** Ids of the collections on the page. */
  readonly ids: readonly number[]
}

type Pages = LRUCache<string, Snapshot<Page | null>>

export interface CollectionRegistryDeps {
  readonly db: Db
  readonly clock: Clock
  readonly log: Log
  readonly controlLog: Pick<ControlLog, 'on' | 'onGap'>
}

export class CollectionRegistry {
  readonly #deps: CollectionRegistryDeps
  readonly #lists: Pages = new LRUCache({ max: listsMax })
  readonly #pages: Pages = new LRUCache({ max: pagesMax })

  constructor(deps: CollectionRegistryDeps) {
    this.#deps = deps
    deps.controlLog.on(({ kind, ref }) => {
      if (kind === collectionChanged) this.#forget(ref)
    })
    deps.controlLog.onGap(() => {
      this.#lists.clear()
      this.#pages.clear()
    })
  }

  /**
   * Drops the cached pages of a collection after this process changed its numbers of stars or forks. Other processes show the new numbers when they
   * build the page again.
   */
  counted(slug: string): void {
    this.#pages.delete(slug)
    for (const list of this.#lists.values()) list.invalidate()
  }

  /**
   * Returns at most 200 public collections, of all models or of one model. Those with the most stars come first, then the newest. `orgId` is the
   * organisation whose own stars are shown.
   */
  async list(modelId: string | null, orgId: number | null): Promise<PublicPage> {
    const name = modelId === null ? '' : `model ${modelId}`
    return this.#shown(await this.#read(this.#lists, name, () => this.#loadList(modelId)), orgId)
  }

  /** Returns a public collection with its versions. Throws the same `not_found` for a private and an unknown one. */
  async page(slug: string, orgId: number | null): Promise<PublicPage> {
    if (!isSlug(slug)) throw noCollection()
    const found = await this.#read(this.#pages, slug, () => this.#loadPage(slug))
    if (found.ids.length === 0) {
      // The absence is not cached. It would use memory and save little, because the collection may be published at any time.
      this.#pages.delete(slug)
      throw noCollection()
    }
    return this.#shown(found, orgId)
  }

  async #read(pages: Pages, name: string, load: () => Promise<Page>): Promise<Page> {
    let snapshot = pages.get(name)
    if (snapshot === undefined) {
      const { clock, log } = this.#deps
      snapshot = new Snapshot<Page | null>({ name: 'collections', clock, log, maxAgeMs: pageAgeMs, empty: null, load })
      pages.set(name, snapshot)
    }
    const found = await snapshot.get()
    if (found !== null) return found
    if (pages.peek(name) === snapshot) pages.delete(name)
    throw fail('database_unavailable')
  }

  async #loadList(modelId: string | null): Promise<Page> {
    const { db } = this.#deps
    const rows = await (modelId === null ? db.many(listPublic, listedReadmeMax, listedMax) : db.many(listPublicOfModel, modelId, listedReadmeMax, listedMax))
    return { page: publicPage({ collections: rows.map(listedJson) }, cachedSeconds), ids: rows.map(row => row.id) }
  }

  async #loadPage(slug: string): Promise<Page> {
    const { db } = this.#deps
    const row = await db.maybe(findPublic, slug)
    if (row === null) return nothing
    const versions = await db.many(listPublicVersions, row.id, versionsListedMax)
    return { page: publicPage({ ...publicJson(row), versions: publicVersionsJson(versions) }, cachedSeconds), ids: [row.id] }
  }

  /** Returns the page and marks the collections that the organisation has starred. When the database is unreachable, the marks are missing. */
  async #shown({ page, ids }: Page, orgId: number | null): Promise<PublicPage> {
    if (orgId === null || ids.length === 0) return page
    const rows = await this.#deps.db.many(listStarred, orgId).catch(() => [])
    const starred = new Set(rows.map(row => row.id))
    if (!ids.some(id => starred.has(id))) return page
    return publicPage(withStars(JSON.parse(page.bytes.toString()), starred), cachedSeconds)
  }

  #forget(slug: string): void {
    this.#pages.delete(slug)
    this.#lists.clear()
  }
}

const nothing: Page = { page: publicPage({}, cachedSeconds), ids: [] }

/** Sets `starred` on the collection of a page, or on every collection of a list. */
function withStars(value: unknown, starred: ReadonlySet<number>): unknown {
  if (!isObject(value)) return value
  const { collections, id } = value
  if (Array.isArray(collections)) return { ...value, collections: collections.map(each => withStars(each, starred)) }
  return { ...value, starred: typeof id === 'number' && starred.has(id) }
}
