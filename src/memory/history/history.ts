/** Reads the earlier versions of a memory key and restores one of them. Decision 0215 says why. */
import type { Db } from '../../platform/db/db.ts'
import { fail } from '../../platform/errors.ts'
import type { Sealer } from '../../platform/security/secrets.ts'
import { AuthorNames } from '../access/author-names.ts'
import type { Conditions, ConfiguredStore, MemoryCall, ReadResult } from '../access/memory-call.ts'
import { isExpired, mayRead, mayWrite } from '../access/path-rules.ts'
import { joinKey, type MemoryKey, parseKey } from '../memory-key.ts'
import { cursorFrom, cursorText, notOurCursor } from '../objects/index/page-cursor.ts'
import type { MemoryObjectsDeps } from '../objects/object-deps.ts'
import { noObject, outsideScope, storeFailure } from '../objects/object-failures.ts'
import type { MemoryObjects } from '../objects/objects.ts'
import { versionKey } from '../objects/version-keeper.ts'
import { type AuthorNameView, type AuthorView, authorInRow, metaHeaders } from '../provenance.ts'
import { isStoreError } from '../stores/object-store.ts'
import { findCurrent, findVersion, type VersionHow, type VersionRow, versionsBefore } from './history-queries.ts'
import type { HistorySweep } from './history-sweep.ts'

/** One version in the form of `GET /v1/me/memory/history`. */
export interface VersionView extends AuthorNameView {
  /** Null for a current object that did not come through the gateway, because it has no version yet. */
  readonly version: string | null
  readonly how: VersionHow
  /** True for the version that `GET /v1/me/memory/o` reads. */
  readonly current: boolean
  readonly size: number
  /** Null for a deletion. */
  readonly etag: string | null
  /** Null for a deletion, and when the bytes did not come through the gateway. */
  readonly sha256: string | null
  /** Null when the bytes did not come through the gateway. */
  readonly author: AuthorView | null
  readonly modified: string
}

export interface MemoryHistoryDeps extends Pick<MemoryObjectsDeps, 'clock' | 'callers' | 'objectBytesMax'> {
  readonly db: Db
  readonly objects: MemoryObjects
  readonly sweep: HistorySweep
  readonly sealer: Sealer
  /** Returns the configured store. Throws `memory_not_configured`. */
  configured(orgId: number): Promise<ConfiguredStore>
}

const afterAll = 2n ** 63n - 1n
const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

export class MemoryHistory {
  readonly #deps: MemoryHistoryDeps

  constructor(deps: MemoryHistoryDeps) {
    this.#deps = deps
  }

  /**
   * Returns the versions of a key, newest first. The first one is the current object. Throws the errors of a read. Throws `not_found` when the key
   * never existed, or when no version of it is kept.
   */
  async list(call: MemoryCall, keyText: string, page: { readonly limit: number; readonly cursor?: string | undefined }) {
    const { row, key } = await this.#admit(call, keyText)
    const { db, clock } = this.#deps
    const orgId = call.principal.orgId
    const before = page.cursor === undefined ? null : this.#seqIn(page.cursor, orgId, key)
    const current = before === null ? await db.maybe(findCurrent, orgId, key) : null
    const old = await db.many(versionsBefore, orgId, key, before ?? afterAll, page.limit + 1)
    const found = current === null ? old : [current, ...old]
    // A version obeys the rule of its object: an expired journal entry is not visible.
    const seen = found.filter(version => !isExpired(key, version.writtenAt.getTime(), row.journalTtlDays, clock.nowMs()))
    if (before === null && seen.length === 0) throw noObject()
    const shown = seen.slice(0, page.limit)
    const last = shown.at(-1)
    // The versions come after the current object.
    const next = seen.length > page.limit && last !== undefined ? this.#cursorAt(last.seq ?? afterAll, orgId, key) : null
    const names = new AuthorNames(db, orgId)
    await names.learn(shown)
    return { key, versions: shown.map(version => viewOf(version, names)), next_cursor: next }
  }

  /**
   * Returns the bytes of one version, as a read of the key returned them at that time. Throws the errors of a read, and `not_found` for a version that is a
   * deletion.
   */
  async read(call: MemoryCall, keyText: string, versionId: string): Promise<ReadResult> {
    const { row, store, key } = await this.#admit(call, keyText)
    return this.#readVersion(call, { row, store }, key, versionId)
  }

  /**
   * Writes the bytes of a version again. The result is a new version that names the old one. Throws the errors of reads and writes. A caller that may write
   * a key may also read it.
   */
  async restore(call: MemoryCall, keyText: string, versionId: string, conditions: Conditions): Promise<{ key: string; etag: string; size: number }> {
    const { row, store, key } = await this.#admit(call, keyText, 'write')
    const { bytes } = await this.#readVersion(call, { row, store }, key, versionId)
    const { etag } = await this.#deps.objects.write(call, key, bytes, conditions, {
      action: 'restore',
      metadata: { 'br-restored-from': versionId.toLowerCase() },
    })
    return { key, etag, size: bytes.length }
  }

  /** Deletes the object and every version of the key. Throws the errors of a deletion. */
  async erase(call: MemoryCall, keyText: string, conditions: Conditions): Promise<void> {
    await this.#deps.objects.remove(call, keyText, conditions, { erasesHistory: true })
    await this.#deps.sweep.removeOf(call.principal.orgId, parseKey(keyText))
  }

  /** Returns an encrypted cursor, because a sequence number would reveal how many versions all organisations have. */
  #cursorAt(seq: bigint, orgId: number, key: MemoryKey): string {
    return cursorText('h', this.#deps.sealer.seal(String(seq), sealedFor(orgId, key)))
  }

  #seqIn(cursor: string, orgId: number, key: MemoryKey): bigint {
    const sealed = cursorFrom('h', cursor)
    try {
      return BigInt(this.#deps.sealer.open(sealed, sealedFor(orgId, key)))
    } catch (error) {
      throw notOurCursor(error)
    }
  }

  async #admit(call: MemoryCall, keyText: string, verb: 'read' | 'write' = 'read'): Promise<ConfiguredStore & { readonly key: MemoryKey }> {
    const { row, store } = await this.#deps.configured(call.principal.orgId)
    const key = parseKey(keyText)
    const may = verb === 'read' ? mayRead : mayWrite
    if (!may(await this.#deps.callers.forKey(call.principal, key), key)) throw outsideScope(verb)
    return { row, store, key }
  }

  async #readVersion(call: MemoryCall, { row, store }: ConfiguredStore, key: MemoryKey, versionId: string): Promise<ReadResult> {
    const { db, clock, objectBytesMax } = this.#deps
    const orgId = call.principal.orgId
    const version = uuid.test(versionId) ? await db.maybe(findVersion, orgId, key, versionId) : null
    if (version === null || isExpired(key, version.writtenAt.getTime(), row.journalTtlDays, clock.nowMs())) throw noVersion()
    if (version.how === 'delete') throw fail('not_found', { message: 'That version is a deletion; it has no bytes. Choose the one before it.' })
    const storeKey = version.objectId === null ? joinKey(orgId, key) : versionKey(orgId, version.objectId)
    try {
      const found = await store.get(storeKey, { signal: call.signal, sizeBytesMax: objectBytesMax })
      // The current object may have been replaced since the index was read, also from outside the gateway.
      if (version.objectId === null && found.etag !== version.etag) throw noVersion()
      return { bytes: found.bytes, etag: version.etag ?? found.etag, modified: version.writtenAt, metaHeaders: metaHeaders(found.metadata) }
    } catch (error) {
      if (isStoreError(error, 'not-found')) throw noVersion()
      if (isStoreError(error, 'too-large'))
        throw fail('payload_too_large', { message: `The version is larger than the ${objectBytesMax} bytes that this gateway reads.` })
      throw storeFailure(error)
    }
  }
}

function noVersion() {
  return fail('not_found', { message: 'There is no such version of that key. GET /v1/me/memory/history?key= lists them.' })
}

function viewOf(row: VersionRow, names: AuthorNames): VersionView {
  return {
    version: row.versionId,
    how: row.how,
    current: row.seq === null,
    size: Number(row.sizeBytes),
    etag: row.etag,
    sha256: row.sha256,
    author: authorInRow(row),
    ...names.of(row),
    modified: row.writtenAt.toISOString(),
  }
}

function sealedFor(orgId: number, key: MemoryKey): string {
  return `memory_history:${orgId}:${key}`
}
