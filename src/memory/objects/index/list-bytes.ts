/** Estimates the size of a list of objects in bytes, and writes a long list as JSON in several turns of the event loop. */
import { nextTurn } from '../../../platform/loop/next-turn.ts'
import type { NamedEntry } from '../../access/memory-call.ts'

/** The names of members, the time and the numbers of one entry in JSON. */
const entryFrameBytes = 200
/** Number of entries that are written before other work of the process gets its turn. */
const entriesAtOnce = 1_000

/** Returns about how many bytes of JSON an entry has. */
export function entryBytes({ key, etag, author, author_name: name, agent_name: agentName }: NamedEntry): number {
  const namesBytes = Buffer.byteLength(name ?? '') + Buffer.byteLength(agentName ?? '')
  return entryFrameBytes + Buffer.byteLength(key) + etag.length + (author?.agent?.length ?? 0) + namesBytes
}

/** Returns the JSON of a whole list. */
export async function listJson(entries: readonly NamedEntry[]): Promise<Buffer> {
  const parts: Buffer[] = [Buffer.from('{"keys":[')]
  for (let at = 0; at < entries.length; at += entriesAtOnce) {
    const text = JSON.stringify(entries.slice(at, at + entriesAtOnce))
    parts.push(Buffer.from(`${at === 0 ? '' : ','}${text.slice(1, -1)}`))
    await nextTurn()
  }
  parts.push(Buffer.from(']}'))
  return Buffer.concat(parts)
}
