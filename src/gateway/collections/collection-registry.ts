/** The public registry: its pages are built outside the requests that read them, and built again when a collection changes. */
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

/** The most collections that a list returns. */
export const listedMax = 200
/** Characters of each readme in a list. */
const listedReadmeMax = 2_000
/** A change by another process or by monitoring is seen within ten times this; an edit is seen immediately. */
const pageAgeMs = 4_000
/** For browsers and caches on the way. */
const cachedSeconds = 10
/** A page of one collection has up to some hundred kilobytes, mostly less than one. */
const pagesMax = 200
/** The list of all, and those of models that are asked for. */
const listsMax = 100

interface Page {
  readonly page: PublicPage
  /** Of the collections on it. */
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

  /** The numbers of a collection have changed in this process. Others see it when their page is old enough. */
  counted(slug: string): void {
    this.#pages.delete(slug)
    for (const list of this.#lists.values()) list.invalidate()
  }

  /** The public collections, or those for one model: the most starred first, then the newest, at most 200. `orgId`: whose stars are shown. */
  async list(modelId: string | null, orgId: number | null): Promise<PublicPage> {
    const name = modelId === null ? '' : `model ${modelId}`
    return this.#shown(await this.#read(this.#lists, name, () => this.#loadList(modelId)), orgId)
  }

  /** A public collection with its versions. Throws `not_found` for a private one as for an unknown one. */
  async page(slug: string, orgId: number | null): Promise<PublicPage> {
    if (!isSlug(slug)) throw noCollection()
    const found = await this.#read(this.#pages, slug, () => this.#loadPage(slug))
    if (found.ids.length === 0) {
      // It may be published at any time; to keep it would cost room and gain little.
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

  /** The page as it is, or with the stars of an organisation. Without the database the numbers alone are shown. */
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

/** A page, or every collection of a list, says of itself whether it is starred. */
function withStars(value: unknown, starred: ReadonlySet<number>): unknown {
  if (!isObject(value)) return value
  const { collections, id } = value
  if (Array.isArray(collections)) return { ...value, collections: collections.map(each => withStars(each, starred)) }
  return { ...value, starred: typeof id === 'number' && starred.has(id) }
}
