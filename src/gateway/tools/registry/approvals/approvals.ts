import type { Clock } from '../../../../platform/clock.ts'
import type { Db, Tx } from '../../../../platform/db/db.ts'
import type { ControlLog } from '../../../../platform/db/db-control-log.ts'
import { fail } from '../../../../platform/errors.ts'
import type { Principal } from '../../../../platform/security/principal.ts'
import type { AuditTrail } from '../../../audit/audit.ts'
import { type Difference, differencesOf } from '../definitions/definition-diff.ts'
import { findToolServer, lockToolServer } from '../servers/tool-server-queries.ts'
import { noToolServer } from '../sync/tool-sync.ts'
import { orgToolsChanged, toolBlocked } from '../tool-news.ts'
import { approvePins, blockPins, countCallable, countPins, findPin, listNamedPins, listPins, type NamedPin, type PinRow, type PinState } from './pin-queries.ts'

export interface ApprovalsDeps {
  readonly db: Db
  readonly clock: Clock
  readonly controlLog: ControlLog
  readonly audit: Pick<AuditTrail, 'recordIn'>
}

/** Who approves or blocks, for the audit trail. */
export interface Approver {
  readonly principal: Principal
  readonly sourceIp: string | null
  readonly requestId: string
}

/** A tool with the definition that the server shows, the approved one, and their differences. */
export interface PinDetail extends PinRow {
  readonly seen: unknown
  readonly approved: unknown
  readonly differences: readonly Difference[]
}

/** A page of the tools of a server. */
export interface PinPage {
  readonly pins: readonly PinRow[]
  readonly nextCursor: string | null
}

/** Maximum number of tools of one organisation that can be called. Each process keeps them in memory. */
export const callableMax = 5_000
/** Maximum bytes of their definitions. The cache of a process counts each byte four times, and keeps no organisation above 256 MiB. */
const callableBytesMax = 48 * 1024 * 1024
/** Maximum number of names in the facts of an error. */
const namedMax = 20
const nameShape = /^[a-z][a-z0-9-]{0,15}__[A-Za-z0-9_-]{1,47}$/

/** The tools of servers, and which of their definitions people approve. */
export class ToolApprovals {
  readonly #deps: ApprovalsDeps
  constructor(deps: ApprovalsDeps) {
    this.#deps = deps
  }

  /** Returns a page of the tools of a server, by public name. Throws `not_found`, and `bad_request` for an invalid cursor. */
  async list(orgId: number, serverId: string, { cursor, state, limit }: { cursor: string | null; state: PinState | null; limit: number }): Promise<PinPage> {
    if (cursor !== null && !nameShape.test(cursor)) throw fail('bad_request', { message: 'cursor must be the next_cursor of the page before.' })
    await this.#requireServer(orgId, serverId)
    const rows = await this.#deps.db.many(listPins, orgId, serverId, cursor ?? '', state, limit + 1)
    const pins = rows.slice(0, limit)
    return { pins, nextCursor: rows.length > limit ? (pins.at(-1)?.publicName ?? null) : null }
  }

  /** Returns the number of tools in each state, by server. */
  async counts(orgId: number): Promise<ReadonlyMap<string, Readonly<Partial<Record<PinState, number>>>>> {
    const counts = new Map<string, Partial<Record<PinState, number>>>()
    for (const { serverId, state, tools } of await this.#deps.db.many(countPins, orgId)) counts.set(serverId, { ...counts.get(serverId), [state]: tools })
    return counts
  }

  /** Returns a tool with its definitions. Throws `not_found`. */
  async find(orgId: number, serverId: string, publicName: string): Promise<PinDetail> {
    await this.#requireServer(orgId, serverId)
    const pin = nameShape.test(publicName) ? await this.#deps.db.maybe(findPin, orgId, serverId, publicName) : null
    if (pin === null) throw noTool([publicName])
    const differences = pin.approved === null || pin.approvedHash === pin.seenHash ? [] : differencesOf(pin.approved, pin.seen)
    return { ...pin, differences }
  }

  /**
   * Approves definitions by hash, all or none. Approving a blocked tool ends the block. Throws `not_found` for an unknown tool, `tool_changed` when the server
   * shows another definition or none, `tool_not_approvable`, and `cap`. The audit trail gets a line with the hash for each tool.
   */
  async approve(serverId: string, asked: readonly { readonly name: string; readonly hash: string }[], by: Approver): Promise<void> {
    const { orgId, userId } = by.principal
    const hashes = new Map(asked.map(({ name, hash }) => [name, hash]))
    if (hashes.size < asked.length) throw fail('bad_request', { message: 'tools: a name occurs twice.' })
    await this.#deps.controlLog.change(async tx => {
      const pins = await namedPins(tx, orgId, serverId, [...hashes.keys()])
      const other = pins.filter(({ publicName, seenHash, isGone }) => isGone || hashes.get(publicName) !== seenHash)
      if (other.length > 0) throw fail('tool_changed', { extra: { tools: other.slice(0, namedMax).map(({ publicName }) => publicName) } })
      const barred = pins.filter(({ isBarred }) => isBarred)
      if (barred.length > 0) throw fail('tool_not_approvable', { extra: { tools: barred.slice(0, namedMax).map(({ publicName }) => publicName) } })
      await tx.exec(approvePins, orgId, pins.map(idOf), userId, new Date(this.#deps.clock.nowMs()))
      const callable = await tx.one(countCallable, orgId)
      if (callable.bytes > BigInt(callableBytesMax))
        throw fail('cap', { message: 'The approved definitions of an organisation may have 48 MiB together. Block some first.' })
      if (callable.tools > callableMax) throw fail('cap', { message: `An organisation may have ${callableMax} approved tools. Block some first.` })
      for (const { id, seenHash } of pins) await this.#record(tx, 'approveTool', by, `tool_server=${serverId} tool=${id} hash=${seenHash}`)
      return { value: undefined, news: [{ kind: orgToolsChanged, ref: String(orgId) }] }
    })
  }

  /** Blocks tools until somebody approves them again. Their running calls end. Throws `not_found`. */
  async block(serverId: string, names: readonly string[], reason: string | null, by: Approver): Promise<void> {
    const { orgId } = by.principal
    await this.#deps.controlLog.change(async tx => {
      const pins = await namedPins(tx, orgId, serverId, [...new Set(names)])
      await tx.exec(blockPins, orgId, pins.map(idOf), reason, new Date(this.#deps.clock.nowMs()))
      for (const { id } of pins) await this.#record(tx, 'blockTool', by, `tool_server=${serverId} tool=${id}`)
      return { value: undefined, news: [{ kind: orgToolsChanged, ref: String(orgId) }, ...pins.map(({ id }) => ({ kind: toolBlocked, ref: String(id) }))] }
    })
  }

  /** Writes a line for one tool. The line of the whole act has the same request id. */
  #record(tx: Tx, act: string, { principal, sourceIp, requestId }: Approver, target: string): Promise<void> {
    return this.#deps.audit.recordIn(tx, { orgId: principal.orgId, actor: principal, act, target, sourceIp, requestId }, 'ok')
  }

  async #requireServer(orgId: number, serverId: string): Promise<void> {
    if ((await this.#deps.db.maybe(findToolServer, orgId, serverId)) === null) throw noToolServer()
  }
}

const idOf = ({ id }: NamedPin): number => id

/** Locks the server and returns the named tools. Throws `not_found` when one is missing. */
async function namedPins(tx: Tx, orgId: number, serverId: string, names: readonly string[]): Promise<readonly NamedPin[]> {
  if ((await tx.maybe(lockToolServer, orgId, serverId)) === null) throw noToolServer()
  const pins = await tx.many(
    listNamedPins,
    orgId,
    serverId,
    names.filter(name => nameShape.test(name)),
  )
  const found = new Set(pins.map(({ publicName }) => publicName))
  const missing = names.filter(name => !found.has(name))
  if (missing.length > 0) throw noTool(missing)
  return pins
}

const noTool = (names: readonly string[]) =>
  fail('not_found', {
    message: 'The MCP server has no such tool. GET /me/tool-servers/{id}/tools lists its tools.',
    extra: { tools: names.filter(name => nameShape.test(name)).slice(0, namedMax) },
  })
