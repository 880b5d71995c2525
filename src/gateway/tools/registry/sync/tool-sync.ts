import type { Clock } from '../../../../platform/clock.ts'
import type { Db, Tx } from '../../../../platform/db/db.ts'
import type { ControlLog, NewsItem } from '../../../../platform/db/db-control-log.ts'
import { fail } from '../../../../platform/errors.ts'
import type { CancelSignal } from '../../../../platform/loop/cancellation.ts'
import type { Ids } from '../../../../platform/values/ids.ts'
import type { AuditTrail } from '../../../audit/audit.ts'
import { emit, eventId } from '../../../webhooks/events/events.ts'
import type { ReadingCredentials } from '../../oauth/reading-credential.ts'
import type { LeftOut } from '../definitions/received-tools.ts'
import { findToolServer, lockToolServer, type SealedToolServerRow } from '../servers/tool-server-queries.ts'
import { orgToolsChanged } from '../tool-news.ts'
import { type Seen, type ToolChange, writeSeen } from './seen-tools.ts'
import { noteSync, noteSyncError } from './sync-queries.ts'
import type { Look, LookError, ToolLooks } from './tool-look.ts'

export interface ToolSyncDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly credentials: Pick<ReadingCredentials, 'of'>
  readonly controlLog: ControlLog
  readonly audit: Pick<AuditTrail, 'recordIn'>
  readonly looks: ToolLooks
}

/** What a sync found. With an error, the earlier state of the tools stays. */
export type SyncResult =
  | { readonly ok: true; readonly changes: readonly ToolChange[]; readonly leftOut: readonly LeftOut[] }
  | { readonly ok: false; readonly error: LookError; readonly message: string }

/** Maximum number of tools that an event names. */
const namedMax = 50

/**
 * Reads the tools of servers again. A new or changed definition is kept as seen and waits for approval. Every change makes an event and a line in the audit
 * trail, in the transaction that writes it.
 */
export class ToolSync {
  readonly #deps: ToolSyncDeps
  constructor(deps: ToolSyncDeps) {
    this.#deps = deps
  }

  /** Reads a server now. Throws `not_found`, `places_taken`, and the signal's reason. */
  async sync(orgId: number, serverId: string, signal: CancelSignal): Promise<SyncResult> {
    const { db, looks } = this.#deps
    const server = await db.maybe(findToolServer, orgId, serverId)
    if (server === null) throw noToolServer()
    const credential = await this.#deps.credentials.of(orgId, server, signal)
    const look: Look = credential.ok ? await looks.look(orgId, server.slug, { url: server.url, header: credential.header }, signal) : credential
    if (look.ok) return this.#keep(orgId, server, look)
    await db.exec(noteSyncError, orgId, serverId, look.error)
    return look
  }

  /** Writes what a server shows, in the transaction that holds the lock of the server. Returns the difference, and the news of it. */
  async write(
    tx: Tx,
    orgId: number,
    { id, slug }: Pick<SealedToolServerRow, 'id' | 'slug'>,
    look: Look & { ok: true },
  ): Promise<Seen & { news: readonly NewsItem[] }> {
    const nowMs = this.#deps.clock.nowMs()
    const seen = await writeSeen(tx, orgId, id, look.received, new Date(nowMs))
    await tx.exec(noteSync, orgId, id, look.era, new Date(nowMs))
    if (seen.changes.length > 0) await this.#report(tx, { orgId, id, slug, nowMs }, seen.changes)
    const isCallableMoved = seen.changes.some(({ approvedHash }) => approvedHash !== null)
    return { ...seen, news: isCallableMoved ? [{ kind: orgToolsChanged, ref: String(orgId) }] : [] }
  }

  async #keep(orgId: number, server: SealedToolServerRow, look: Look & { ok: true }): Promise<SyncResult> {
    return this.#deps.controlLog.change(async tx => {
      if ((await tx.maybe(lockToolServer, orgId, server.id)) === null) throw noToolServer()
      const now = await tx.one(findToolServer, orgId, server.id)
      // The answer came from another address, or under another credential. The next sync asks the new one.
      if (!isSameCredential(now, server)) return { value: { ok: true, changes: [], leftOut: [] }, news: [] }
      const { changes, leftOut, news } = await this.write(tx, orgId, server, look)
      return { value: { ok: true, changes, leftOut }, news }
    })
  }

  async #report(tx: Tx, { orgId, id, slug, nowMs }: { orgId: number; id: string; slug: string; nowMs: number }, changes: readonly ToolChange[]): Promise<void> {
    const { ids, audit } = this.#deps
    const count = (change: ToolChange['change']): number => changes.filter(each => each.change === change).length
    const counts = { new: count('new'), changed: count('changed'), gone: count('gone'), returned: count('returned') }
    const tools = changes
      .slice(0, namedMax)
      .map(({ publicName, change, hash, approvedHash }) => ({ tool: publicName, change, hash, approved_hash: approvedHash }))
    const data = { server_id: id, server_slug: slug, ...counts, tools }
    await emit(tx, { id: eventId(ids, nowMs), orgId, type: 'tool.changed', atMs: nowMs, data })
    const target = [`tool_server=${id}`, ...Object.entries(counts).map(([name, number]) => `${name}=${number}`)].join(' ')
    await audit.recordIn(tx, { orgId, actor: 'system', act: 'noteToolChanges', target, sourceIp: null, requestId: null }, 'ok')
  }
}

/** Returns whether two states of a server have one address and one credential. */
export const isSameCredential = (a: SealedToolServerRow, b: SealedToolServerRow): boolean =>
  a.url === b.url && a.authKind === b.authKind && a.headerSealed === b.headerSealed && a.clientChangedAt?.getTime() === b.clientChangedAt?.getTime()

/** The error for an id that is not a server of the organisation. */
export const noToolServer = () => fail('not_found', { message: 'There is no such MCP server. GET /me/tool-servers lists those of this organisation.' })
