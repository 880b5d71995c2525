/** Appends entries. Every entry is a separate object, so that concurrent writers cannot overwrite each other's entries. */
import type { Clock } from '../../platform/clock.ts'
import { fail } from '../../platform/errors.ts'
import type { Ids } from '../../platform/values/ids.ts'
import type { ConfiguredStore, MemoryCall } from '../access/memory-call.ts'
import { mayWrite } from '../access/path-rules.ts'
import { parseKey, parseNewKey } from '../memory-key.ts'
import type { MemoryObjectsDeps } from './object-deps.ts'
import { outsideScope } from './object-failures.ts'
import type { MemoryObjects } from './objects.ts'

export interface AppendsDeps {
  readonly clock: Clock
  readonly ids: Ids
  readonly objects: MemoryObjects
  readonly callers: MemoryObjectsDeps['callers']
  /** Returns the configured store. Throws `memory_not_configured`. */
  configured(orgId: number): Promise<ConfiguredStore>
}

export interface Appended {
  readonly key: string
  readonly size: number
  readonly etag: string
}

/** Maximum length of the part of a name that comes from a caller's own label. */
const labelCharsMax = 40

export class Appends {
  readonly #deps: AppendsDeps

  constructor(deps: AppendsDeps) {
    this.#deps = deps
  }

  /** Writes the entry `<folder>/<day>/<id>-<author>.md`. Days are UTC. Throws the errors of a write. */
  async append(call: MemoryCall, folderText: string, content: string | undefined): Promise<Appended> {
    const { clock, ids, objects, callers, configured } = this.#deps
    await configured(call.principal.orgId)
    const folder = parseKey(folderText.replace(/\/$/, ''))
    const nowMs = clock.nowMs()
    const day = new Date(nowMs).toISOString().slice(0, 10)
    const key = parseNewKey(`${folder}/${day}/${sortableId(ids.uuidv7(nowMs))}-${nameOf(call)}.md`)
    if (!mayWrite(await callers.forKey(call.principal, key), key)) throw outsideScope('append')
    if (content === undefined || content === '') throw fail('bad_request', { message: 'Field "content": the text of the entry is needed.' })
    if (!content.isWellFormed()) throw fail('bad_request', { message: 'Field "content": not well-formed Unicode (a lone surrogate).' })
    const bytes = Buffer.from(content)
    const { etag } = await objects.write(call, key, bytes, { ifNoneMatch: '*' }, { action: 'append' })
    return { key, size: bytes.length, etag }
  }
}

const crockford = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** Returns a UUIDv7 in the 26 characters of a ULID. As text it sorts by time. */
export function sortableId(uuid: string): string {
  let rest = BigInt(`0x${uuid.replaceAll('-', '')}`)
  let text = ''
  for (let place = 0; place < 26; place++) {
    text = (crockford[Number(rest & 31n)] ?? '') + text
    rest >>= 5n
  }
  return text
}

/** Returns the author for the name of the entry. The metadata contain the verified author. */
function nameOf({ principal, agentLabel }: MemoryCall): string {
  if (principal.kind === 'agent') return `agent-${principal.agentId}`
  if (agentLabel !== null) return `label-${agentLabel.replace(/[^A-Za-z0-9._-]+/g, '_').slice(0, labelCharsMax)}`
  return principal.kind === 'key' && principal.userId === null ? `key-${principal.keyId}` : `user-${principal.userId}`
}
