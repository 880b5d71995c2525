/** Collections of an organisation: a chain of steps for one model of the catalog, with a readme and versions. */
import type { Clock } from '../../platform/clock.ts'
import { idOfCursor, pageMaxBytes, rowsOfPage } from '../../platform/db/bounded-page.ts'
import type { Db, Tx } from '../../platform/db/db.ts'
import type { ControlLog, NewsItem } from '../../platform/db/db-control-log.ts'
import { fail, type GatewayError } from '../../platform/errors.ts'
import type { Ids } from '../../platform/values/ids.ts'
import type { Chains } from '../routing/chains.ts'
import {
  type CollectionContent,
  type CollectionRow,
  countForks,
  countOwn,
  deleteCollection,
  dropOldVersions,
  findOwnById,
  findVersion,
  insertCollection,
  keepVersion,
  listOwn,
  listVersions,
  lockOrg,
  lockOwn,
  lockWithSource,
  updateCollection,
  type VersionRow,
} from './collection-queries.ts'
import { checkPublishable, isSameContent, modelIdOf, nameOf, readmeOf } from './collection-rules.ts'
import { claimSlug } from './collection-slug.ts'

/** The `kind` of the control-log item for a changed collection that is or was public. The item's `ref` is the collection's slug. */
export const collectionChanged = 'collection_changed'

/** Maximum number of versions in a list. An older version can be requested by its number. */
export const versionsListedMax = 100
/** Maximum number of collections of one page. */
export const collectionsPageMax = 200
/** Maximum number of stored versions of a collection. Each version may have a readme of 64 KiB, so without a limit frequent edits could fill the disk. */
const versionsKept = 500

export interface CollectionsDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly controlLog: Pick<ControlLog, 'change'>
  readonly chains: Pick<Chains, 'checkModel' | 'stepsOf'>
  /** The setting COLLECTIONS_MAX. */
  readonly collectionsMax: number
}

/** The unchecked parameters of a client. An undefined value is omitted. */
export interface CollectionParams {
  readonly name?: unknown
  readonly model?: unknown
  readonly steps?: unknown
  readonly readmeMd?: unknown
  readonly isPublic?: boolean | undefined
}

/** The content of a new collection. It also has the source when the collection is a fork. */
export interface NewCollection extends CollectionContent {
  readonly isPublic: boolean
  readonly source: Pick<CollectionRow, 'id' | 'slug'> | null
}

export interface CollectionWithVersions {
  readonly collection: CollectionRow
  /** The versions, newest first. */
  readonly versions: readonly VersionRow[]
}

export const noCollection = (): GatewayError =>
  fail('not_found', { message: 'There is no such collection. GET /me/collections lists your own, GET /v1/collections the public ones.' })

export class Collections {
  readonly #deps: CollectionsDeps
  constructor(deps: CollectionsDeps) {
    this.#deps = deps
  }

  /**
   * Returns a page of the collections of the organisation, newest first, and the cursor of the next page. A page ends before its collections have more
   * than `pageMaxBytes`. Throws `bad_request` for an invalid cursor.
   */
  async list(orgId: number, limit: number, cursor: string | null): Promise<{ collections: readonly CollectionRow[]; nextCursor: string | null }> {
    const { rows, hasMore } = rowsOfPage(await this.#deps.db.many(listOwn, orgId, idOfCursor(cursor), limit + 1, pageMaxBytes), limit)
    return { collections: rows, nextCursor: hasMore ? String(rows.at(-1)?.id) : null }
  }

  /** Returns a collection of the organisation, at present or as it was at a version. Throws `not_found`. */
  async get(orgId: number, id: number, version: number | null): Promise<CollectionWithVersions> {
    const { db } = this.#deps
    const collection = await db.maybe(findOwnById, orgId, id)
    if (collection === null) throw noCollection()
    const then = version === null ? collection : await db.maybe(findVersion, orgId, id, version)
    if (then === null)
      throw fail('not_found', {
        message: `The collection has no such version; the present one is ${collection.version}, and the newest ${versionsKept} are kept.`,
      })
    return { collection: { ...collection, ...then }, versions: await db.many(listVersions, orgId, id, versionsListedMax) }
  }

  /** Creates a collection at version 1. Throws `bad_name`, `bad_model`, `bad_steps`, `bad_readme` and `cap`. */
  async create(orgId: number, userId: number | null, params: CollectionParams): Promise<CollectionRow> {
    const content = {
      name: nameOf(params.name),
      modelId: this.#model(params.model),
      steps: await this.#deps.chains.stepsOf(orgId, params.steps),
      readmeMd: readmeOf(params.readmeMd ?? null),
    }
    const isPublic = params.isPublic ?? false
    if (isPublic) checkPublishable(content.steps)
    return this.#deps.controlLog.change(async tx => {
      await tx.one(lockOrg, orgId)
      const value = await this.insert(tx, orgId, userId, { ...content, isPublic, source: null })
      return { value, news: isPublic ? [newsOf(value)] : [] }
    })
  }

  /** Inserts a collection in a transaction that has locked the organisation's row. Throws `cap`. */
  async insert(tx: Tx, orgId: number, userId: number | null, { name, modelId, steps, readmeMd, isPublic, source }: NewCollection): Promise<CollectionRow> {
    const { collectionsMax, ids } = this.#deps
    if ((await tx.one(countOwn, orgId)).count >= collectionsMax)
      throw fail('cap', { message: `An organisation may have ${collectionsMax} collections, forks among them. Delete one first.` })
    const slug = await claimSlug(tx, name, isPublic, ids)
    const [now, stepsText] = [this.#now(), JSON.stringify(steps)]
    const [sourceId, sourceSlug] = [source?.id ?? null, source?.slug ?? null]
    const made = await tx.one(insertCollection, orgId, slug, name, modelId, stepsText, readmeMd, isPublic, sourceId, sourceSlug, userId, now)
    await tx.exec(keepVersion, orgId, made.id, userId, now)
    return made
  }

  /**
   * Changes the given fields. A change of name, model, steps or readme creates a version. Publishing creates no version. The slug never changes.
   * Throws `not_found` and the errors of `create`.
   */
  async change(orgId: number, userId: number | null, id: number, params: CollectionParams): Promise<CollectionRow> {
    if ((await this.#deps.db.maybe(findOwnById, orgId, id)) === null) throw noCollection()
    const changes: Partial<CollectionContent> = {
      ...(params.name === undefined ? {} : { name: nameOf(params.name) }),
      ...(params.model === undefined ? {} : { modelId: this.#model(params.model) }),
      ...(params.steps === undefined ? {} : { steps: await this.#deps.chains.stepsOf(orgId, params.steps) }),
      ...(params.readmeMd === undefined ? {} : { readmeMd: readmeOf(params.readmeMd) }),
    }
    return this.#deps.controlLog.change(async tx => {
      const before = await tx.maybe(lockOwn, orgId, id)
      if (before === null) throw noCollection()
      const { name, modelId, steps, readmeMd } = { ...before, ...changes }
      const isPublic = params.isPublic ?? before.isPublic
      const isSame = isSameContent(before, { name, modelId, steps, readmeMd })
      if (isSame && isPublic === before.isPublic) return { value: before, news: [] }
      if (isPublic) checkPublishable(steps)
      const [now, version] = [this.#now(), isSame ? before.version : before.version + 1]
      const value = await tx.one(updateCollection, orgId, id, name, modelId, JSON.stringify(steps), readmeMd, isPublic, version, now)
      if (!isSame) {
        await tx.exec(keepVersion, orgId, id, userId, now)
        await tx.exec(dropOldVersions, orgId, id, versionsKept)
      }
      return { value, news: before.isPublic || isPublic ? [newsOf(before)] : [] }
    })
  }

  /** Removes a collection with its versions and stars. Its forks stay. Routing that was made from it stays too. Throws `not_found`. */
  remove(orgId: number, id: number): Promise<void> {
    return this.#deps.controlLog.change(async tx => {
      const held = await tx.many(lockWithSource, orgId, id)
      const own = held.find(row => row.id === id)
      if (own === undefined) throw noCollection()
      await tx.exec(deleteCollection, orgId, id)
      for (const source of held) if (source !== own) await tx.exec(countForks, source.id)
      return { value: undefined, news: held.filter(row => row.isPublic).map(newsOf) }
    })
  }

  #model(given: unknown): string {
    const modelId = modelIdOf(given)
    this.#deps.chains.checkModel(modelId)
    return modelId
  }

  #now(): Date {
    return new Date(this.#deps.clock.nowMs())
  }
}

const newsOf = ({ slug }: { readonly slug: string }): NewsItem => ({ kind: collectionChanged, ref: slug })
