/** Memory objects: read, write, delete, list. The scope is checked before the existence everywhere, so a refusal does not reveal which objects exist. */

import type { Conditions, MemoryCall, NamedEntry, ReadResult, RemoveExtras, WriteExtras } from '../access/memory-call.ts'
import type { ListPageView, ListParams } from './index/list-page.ts'
import type { MemoryObjectsDeps } from './object-deps.ts'
import { MemoryReads } from './object-reads.ts'
import { MemoryWrites } from './object-writes.ts'

/** The object calls as one service. */
export class MemoryObjects {
  readonly reads: MemoryReads
  readonly writes: MemoryWrites

  constructor(deps: MemoryObjectsDeps) {
    this.reads = new MemoryReads(deps)
    this.writes = new MemoryWrites(deps)
  }

  /** Reads one object. See `MemoryReads.read`. */
  read(call: MemoryCall, keyText: string): Promise<ReadResult> {
    return this.reads.read(call, keyText)
  }

  /** Returns every readable key under a prefix. See `MemoryReads.list`. */
  list(call: MemoryCall, prefixText: string): Promise<NamedEntry[]> {
    return this.reads.list(call, prefixText)
  }

  /** Returns the JSON of every readable key under a prefix. See `MemoryReads.listWhole`. */
  listWhole(call: MemoryCall, prefixText: string): Promise<Buffer> {
    return this.reads.listWhole(call, prefixText)
  }

  /** Returns one page of a list. See `MemoryReads.listPage`. */
  listPage(call: MemoryCall, prefixText: string, params: ListParams): Promise<ListPageView> {
    return this.reads.listPage(call, prefixText, params)
  }

  /** Writes one object. See `MemoryWrites.write`. */
  write(call: MemoryCall, keyText: string, bytes: Buffer, conditions: Conditions = {}, extras: WriteExtras = {}): Promise<{ etag: string }> {
    return this.writes.write(call, keyText, bytes, conditions, extras)
  }

  /** Deletes one object. See `MemoryWrites.remove`. */
  remove(call: MemoryCall, keyText: string, conditions: Conditions = {}, extras: RemoveExtras = {}): Promise<void> {
    return this.writes.remove(call, keyText, conditions, extras)
  }
}
