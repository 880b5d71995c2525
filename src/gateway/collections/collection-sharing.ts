/** Stars, forks and imports of public collections of other organisations. */
import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db/db.ts'
import type { ControlLog } from '../../platform/db/db-control-log.ts'
import type { Chain, Chains } from '../routing/chains.ts'
import { addStar, type CollectionRow, countForks, countStars, findFork, lockOrg, lockVisible, removeStar } from './collection-queries.ts'
import { isSlug } from './collection-slug.ts'
import { type Collections, noCollection } from './collections.ts'

export interface CollectionSharingDeps {
  readonly db: Db
  readonly clock: Clock
  readonly controlLog: Pick<ControlLog, 'change'>
  readonly chains: Pick<Chains, 'checkModel' | 'references' | 'stepsWith' | 'saveIn'>
  readonly collections: Pick<Collections, 'insert'>
  /** Is called after the commit when the number of stars or forks of a collection has changed. */
  counted(slug: string): void
}

export interface Starred {
  readonly id: number
  readonly starred: boolean
  readonly stars: number
}

export interface Forked {
  readonly collection: CollectionRow
  /** False when the organisation had already forked the collection. */
  readonly isNew: boolean
}

export interface Imported extends Chain {
  /** The organisation's collection that is now its routing. */
  readonly id: number
  /** Slug of the organisation's fork, whether new or existing. Null when the collection already belongs to the organisation. */
  readonly forkedAs: string | null
}

/** Stars, forks and imports collections. It counts stars and forks while the collection is locked, so these numbers always match the rows. */
export class CollectionSharing {
  readonly #deps: CollectionSharingDeps
  constructor(deps: CollectionSharingDeps) {
    this.#deps = deps
  }

  /** Adds the organisation's star (true), removes it (false), or toggles it (null). Throws `not_found`. */
  async star(orgId: number, slug: string, starOrToggle: boolean | null): Promise<Starred> {
    const { db, clock, counted } = this.#deps
    const result = await db.tx(async tx => {
      const { id } = await heldVisible(tx, orgId, slug)
      const removed = starOrToggle === true ? 0 : await tx.exec(removeStar, orgId, id)
      const starred = starOrToggle ?? removed === 0
      if (starred) await tx.exec(addStar, orgId, id, new Date(clock.nowMs()))
      return { id, starred, stars: (await tx.one(countStars, id)).stars }
    })
    counted(slug)
    return result
  }

  /**
   * Copies the present version into the organisation as a private collection at version 1. Later changes by the author do not affect the copy. When
   * the organisation already has a fork, it returns that fork. Throws `not_found` and `cap`.
   */
  async fork(orgId: number, userId: number | null, slug: string): Promise<Forked> {
    const forked = await this.#deps.db.tx(async tx => {
      await tx.one(lockOrg, orgId)
      return this.#forkIn(tx, orgId, userId, await heldVisible(tx, orgId, slug))
    })
    if (forked.isNew) this.#deps.counted(slug)
    return forked
  }

  /**
   * Makes a collection the routing of its model for the organisation. It uses an own collection directly. It forks a collection of another
   * organisation first, in the same transaction. Throws `not_found` and `cap`. Throws `bad_model` or `bad_steps` for models that are no longer in the
   * catalog.
   */
  async apply(orgId: number, userId: number | null, slug: string): Promise<Imported> {
    const { chains, controlLog, counted } = this.#deps
    const references = await chains.references(orgId)
    const { imported, isForked } = await controlLog.change(async tx => {
      await tx.one(lockOrg, orgId)
      const found = await heldVisible(tx, orgId, slug)
      const forked = found.orgId === orgId ? null : await this.#forkIn(tx, orgId, userId, found)
      const { id, modelId, steps } = forked?.collection ?? found
      chains.checkModel(modelId)
      const chain = { model: modelId, steps: chains.stepsWith(references, steps) }
      const news = await chains.saveIn(tx, orgId, userId, chain)
      const imported = { ...chain, id, forkedAs: forked?.collection.slug ?? null }
      return { value: { imported, isForked: forked?.isNew ?? false }, news: [news] }
    })
    if (isForked) counted(slug)
    return imported
  }

  async #forkIn(tx: Tx, orgId: number, userId: number | null, source: CollectionRow): Promise<Forked> {
    const before = await tx.maybe(findFork, orgId, source.id)
    if (before !== null) return { collection: before, isNew: false }
    const collection = await this.#deps.collections.insert(tx, orgId, userId, { ...source, isPublic: false, source })
    await tx.exec(countForks, source.id)
    return { collection, isNew: true }
  }
}

/**
 * Returns a collection that the organisation can see, and locks it until the transaction ends. Throws `not_found`, also for a private collection of
 * another organisation.
 */
async function heldVisible(tx: Tx, orgId: number, slug: string): Promise<CollectionRow> {
  const found = isSlug(slug) ? await tx.maybe(lockVisible, orgId, slug) : null
  if (found === null) throw noCollection()
  return found
}
