/** Compares what a server shows with what is kept, and writes the difference. */
import type { Tx } from '../../../../platform/db/db.ts'
import type { LeftOut, Received, ReceivedTool } from '../definitions/received-tools.ts'
import { deleteOldVersions, insertDefinitions, insertPins, listSyncedPins, noteGone, noteSeen, type SyncedPin } from './sync-queries.ts'

/** How a tool differs from what the last sync saw. `returned`: it was gone. */
export interface ToolChange {
  readonly publicName: string
  readonly change: 'new' | 'changed' | 'gone' | 'returned'
  /** The hash that the server shows now, or showed last. */
  readonly hash: string
  readonly approvedHash: string | null
}

export interface Seen {
  readonly changes: readonly ToolChange[]
  readonly leftOut: readonly LeftOut[]
}

/** Number of definitions that one statement writes. */
const batchTools = 50
/** Number of versions of a tool that are kept beside the approved one and the one that was seen last. */
const versionsKept = 10

/** Writes what a server shows. It never changes which definition is approved. The caller holds the lock of the server. */
export async function writeSeen(tx: Tx, orgId: number, serverId: string, { tools, leftOut }: Received, now: Date): Promise<Seen> {
  const known = new Map((await tx.many(listSyncedPins, orgId, serverId)).map(pin => [pin.upstreamName, pin]))
  const isShown = new Set(tools.map(({ upstreamName }) => upstreamName))
  const fresh = tools.filter(({ upstreamName }) => !known.has(upstreamName))
  const moved = tools.filter(tool => isMoved(tool, known.get(tool.upstreamName)))
  const gone = [...known.values()].filter(pin => !pin.isGone && !isShown.has(pin.upstreamName))
  for (const some of batches([...fresh, ...moved])) {
    const parts = [some.map(nameOf), some.map(({ definition }) => definition), some.map(hashOf), some.map(({ findings }) => JSON.stringify(findings))] as const
    await tx.exec(insertDefinitions, orgId, serverId, ...parts, now)
  }
  const added = new Set<string>()
  for (const some of batches(fresh)) {
    const publicNames = some.map(({ publicName }) => publicName)
    const rows = await tx.many(insertPins, orgId, serverId, some.map(nameOf), publicNames, some.map(hashOf), now)
    for (const { upstreamName } of rows) added.add(upstreamName)
  }
  if (moved.length > 0) {
    await tx.exec(noteSeen, orgId, serverId, moved.map(nameOf), moved.map(hashOf))
    await tx.exec(deleteOldVersions, orgId, serverId, moved.map(nameOf), versionsKept)
  }
  if (gone.length > 0) await tx.exec(noteGone, orgId, serverId, gone.map(nameOf), now)
  const refused = fresh.filter(({ upstreamName }) => !added.has(upstreamName))
  return {
    changes: [
      ...fresh.filter(({ upstreamName }) => added.has(upstreamName)).map(tool => changeOf(tool, 'new', null)),
      ...moved.map(tool => movedOf(tool, known.get(tool.upstreamName))),
      ...gone.map(({ publicName, seenHash, approvedHash }) => ({ publicName, change: 'gone' as const, hash: seenHash, approvedHash })),
    ],
    leftOut: [...leftOut, ...refused.map(({ position }) => ({ position, reason: 'name_taken' as const }))],
  }
}

const nameOf = ({ upstreamName }: { readonly upstreamName: string }): string => upstreamName
const hashOf = ({ hash }: ReceivedTool): string => hash

const isMoved = ({ hash }: ReceivedTool, pin: SyncedPin | undefined): boolean => pin !== undefined && (pin.isGone || pin.seenHash !== hash)

function movedOf(tool: ReceivedTool, pin: SyncedPin | undefined): ToolChange {
  return changeOf(tool, pin?.isGone === true ? 'returned' : 'changed', pin?.approvedHash ?? null)
}

function changeOf({ publicName, hash }: ReceivedTool, change: ToolChange['change'], approvedHash: string | null): ToolChange {
  return { publicName, change, hash, approvedHash }
}

function* batches(tools: readonly ReceivedTool[]): Generator<readonly ReceivedTool[]> {
  for (let from = 0; from < tools.length; from += batchTools) yield tools.slice(from, from + batchTools)
}
