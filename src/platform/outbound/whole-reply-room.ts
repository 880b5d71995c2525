/**
 * How much of whole replies this process holds while it reads them: bytes of all of them together, and a share for the organisations of each founder.
 * A reply that finds no room is not refused. Its reader waits, so its server waits too. The oldest reply of a founder always goes on, so every reply
 * comes to its end. Decision 0475 says why.
 */

/** The room of one reply. */
export interface RoomOfReply {
  /** Takes room for bytes that have arrived. False: there is none now. */
  take(bytes: number): boolean
  /** Calls `wake` once, when there may be room. */
  whenFree(wake: () => void): void
}

export interface WholeReplyLimits {
  /** Bytes of all replies together, the free part of each apart. */
  readonly totalBytes: number
  /** What one founder's organisations may have of what the others leave free. */
  readonly orgPercent: number
}

/** So much of each reply counts as nothing: short replies, nearly all, need no room. */
const freeBytes = 32 * 1024

interface Reader {
  readonly founder: string
  /** Bytes that have arrived. */
  arrivedBytes: number
  /** Bytes of them that take room. */
  heldBytes: number
  hasWaited: boolean
  wake: (() => void) | null
}

interface FounderReaders {
  bytes: number
  /** Those that take room or wait for it. The oldest comes first. */
  readonly readers: Set<Reader>
}

/** The room of one process. */
export class WholeReplyRoom {
  readonly limits: WholeReplyLimits
  /** How often a reader had to wait. */
  waits = 0
  readonly #founderOf: (orgId: number) => string
  readonly #byFounder = new Map<string, FounderReaders>()
  #bytes = 0

  /** `founderOf` says who founded an organisation. Left out: each organisation has a founder of its own. */
  constructor(limits: WholeReplyLimits, founderOf: (orgId: number) => string = String) {
    this.limits = limits
    this.#founderOf = founderOf
  }

  /** Bytes that take room. */
  get bytes(): number {
    return this.#bytes
  }

  /** Does the work that reads and needs one reply, for the organisation. The room of the reply is given back when the work has ended. */
  async run<T>(orgId: number, work: (room: RoomOfReply) => Promise<T>): Promise<T> {
    const reader: Reader = { founder: this.#founderOf(orgId), arrivedBytes: 0, heldBytes: 0, hasWaited: false, wake: null }
    const whenFree = (wake: () => void): void => {
      reader.wake = wake
    }
    try {
      return await work({ take: bytes => this.#take(reader, bytes), whenFree })
    } finally {
      this.#end(reader)
    }
  }

  #take(reader: Reader, bytes: number): boolean {
    const arrivedBytes = reader.arrivedBytes + bytes
    const needed = Math.max(0, arrivedBytes - freeBytes) - reader.heldBytes
    if (needed > 0) {
      const own = this.#readersOf(reader.founder)
      own.readers.add(reader)
      const [oldest] = own.readers
      if (reader !== oldest && own.bytes + needed > this.#shareOf(own)) {
        reader.hasWaited = true
        this.waits++
        return false
      }
      own.bytes += needed
      this.#bytes += needed
      reader.heldBytes += needed
    }
    reader.arrivedBytes = arrivedBytes
    // There may be room for the next one as well.
    if (reader.hasWaited) this.#wakeNext(this.#byFounder.get(reader.founder))
    reader.hasWaited = false
    return true
  }

  #end(reader: Reader): void {
    const own = this.#byFounder.get(reader.founder)
    reader.wake = null
    if (own === undefined || !own.readers.delete(reader)) return
    own.bytes -= reader.heldBytes
    this.#bytes -= reader.heldBytes
    if (own.readers.size === 0) this.#byFounder.delete(reader.founder)
    for (const each of this.#byFounder.values()) this.#wakeNext(each)
  }

  /** Wakes the oldest reader of a founder that waits. */
  #wakeNext(own: FounderReaders | undefined): void {
    if (own === undefined) return
    for (const reader of own.readers) {
      const { wake } = reader
      if (wake === null) continue
      reader.wake = null
      wake()
      return
    }
  }

  #readersOf(founder: string): FounderReaders {
    const known = this.#byFounder.get(founder)
    if (known !== undefined) return known
    const made: FounderReaders = { bytes: 0, readers: new Set() }
    this.#byFounder.set(founder, made)
    return made
  }

  #shareOf(own: FounderReaders): number {
    const { totalBytes, orgPercent } = this.limits
    return Math.floor(((totalBytes - (this.#bytes - own.bytes)) * orgPercent) / 100)
  }
}
