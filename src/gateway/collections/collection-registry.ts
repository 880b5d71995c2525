/** The public registry of collections. The gateway builds its pages outside the requests that read them. It builds a page again when a collection changes. */
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db/db.ts'
import type { ControlLog } from '../../platform/db/db-control-log.ts'
import { fail } from '../../platform/errors.ts'
import { Snapshot } from '../../platform/loop/snapshot.ts'
import type { Log } from '../../platform/observe/log.ts'
import { etagOf, type PublicPage, publicPage } from '../../platform/public-page.ts'
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
  /** The collections on the page in order, and where the bytes of the page have the value of `starred` of each. */
  readonly ids: readonly number[]
  readonly marksAt: readonly number[]
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
    return pageOf({ collections: rows.map(listedJson) }, rows)
  }

  async #loadPage(slug: string): Promise<Page> {
    const { db } = this.#deps
    const row = await db.maybe(findPublic, slug)
    if (row === null) return nothing
    const versions = await db.many(listPublicVersions, row.id, versionsListedMax)
    return pageOf({ ...publicJson(row), versions: publicVersionsJson(versions) }, [row])
  }

  /** Returns the page and marks the collections that the organisation has starred. When the database is unreachable, the marks are missing. */
  async #shown(shown: Page, orgId: number | null): Promise<PublicPage> {
    if (orgId === null || shown.ids.length === 0) return shown.page
    const rows = await this.#deps.db.many(listStarred, orgId, shown.ids).catch(() => [])
    return rows.length === 0 ? shown.page : withStars(shown, new Set(rows.map(row => row.id)))
  }

  #forget(slug: string): void {
    this.#pages.delete(slug)
    this.#lists.clear()
  }
}

const nothing: Page = { page: publicPage({}, cachedSeconds), ids: [], marksAt: [] }

const unmarked = '"starred":false'
/** As long as `unmarked`, so that a mark moves no other byte. JSON permits the space. */
const marked = '"starred":true '

/** Makes a page of these collections, none of which is marked. Every collection has one `unmarked`, because JSON escapes a quote inside of a text. */
function pageOf(value: unknown, rows: readonly { readonly id: number }[]): Page {
  const page = publicPage(value, cachedSeconds)
  const marksAt: number[] = []
  for (let at = page.bytes.indexOf(unmarked); at >= 0; at = page.bytes.indexOf(unmarked, at + unmarked.length)) marksAt.push(at)
  if (marksAt.length !== rows.length) throw new Error('a page of collections without their marks')
  return { page, ids: rows.map(row => row.id), marksAt }
}

/**
 * Marks collections on a page. The bytes are copied only when they are sent, and nothing is parsed, written or hashed again, because a list has some
 * hundred kilobytes. Decision 0651 says why.
 */
function withStars({ page, ids, marksAt }: Page, starred: ReadonlySet<number>): PublicPage {
  const marks = marksAt.filter((_, index) => starred.has(ids[index] ?? 0))
  return {
    etag: etagOf(createHash('sha256').update(`${page.etag} ${marks.join(' ')}`)),
    maxAgeSeconds: page.maxAgeSeconds,
    get bytes() {
      const bytes = Buffer.from(page.bytes)
      for (const at of marks) bytes.write(marked, at)
      return bytes
    },
  }
}
