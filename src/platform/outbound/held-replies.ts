/**
 * Limits how many bytes of replies this process keeps in memory. The replies come from providers, servers of organisations and memory stores. There is one
 * limit for all of them, and a share for the organisations of each founder. The reader of a whole reply waits for room and meanwhile reads nothing from the
 * server. The oldest reader of a founder never waits, so every reply is eventually read to its end. Data that cannot wait, for example of streams, is
 * refused when there is no room. Decision 0467 gives the reasons.
 */

export interface HeldRepliesLimits {
  /** Maximum number of bytes of all replies together. The first bytes of each reply are free and do not count. */
  readonly totalBytes: number
  /** The organisations of one founder may use at most this percentage of the room that others leave free. */
  readonly founderPercent: number
}

/** Why there is no room: the process has none, or the founder's share is used up. */
export type HeldRefusal = 'total' | 'organisation'

/** Room for a reader that can wait. It reads one reply, or the replies to one call. */
export interface RoomOfReply {
  /** Takes room for bytes that have arrived. Returns false when there is none now. A negative number gives room back. */
  take(bytes: number): boolean
  /** Calls `wake` once, as soon as there may be room. */
  whenFree(wake: () => void): void
}

/** This many bytes of each reply are free. Nearly all replies and events are shorter, so the check costs only one comparison. */
const freeHeldBytes = 64 * 1024

interface Reader {
  readonly founder: string
  /** Bytes that have arrived. */
  arrivedBytes: number
  /** The part of these bytes that uses room. */
  takenBytes: number
  hasWaited: boolean
  wakes: (() => void)[]
}

interface FounderReplies {
  bytes: number
  /** Readers that use room or wait for it, oldest first. */
  readonly readers: Set<Reader>
}

/** The room of one process. */
export class HeldReplies {
  readonly limits: HeldRepliesLimits
  /** How often a reader had to wait. */
  waits = 0
  /** How often a reply that cannot wait was refused, by reason. */
  readonly refusals: Record<HeldRefusal, number> = { total: 0, organisation: 0 }
  readonly #founderOf: (orgId: number) => string
  readonly #byFounder = new Map<string, FounderReplies>()
  #bytes = 0

  /** `founderOf` returns the founder of an organisation. When absent, each organisation is its own founder. */
  constructor(limits: HeldRepliesLimits, founderOf: (orgId: number) => string = String) {
    this.limits = limits
    this.#founderOf = founderOf
  }

  /** Bytes that use room now. */
  get bytes(): number {
    return this.#bytes
  }

  /** Runs `work`, which reads all replies to one call of the organisation. The room is given back when `work` ends. */
  async run<T>(orgId: number, work: (room: RoomOfReply) => Promise<T>): Promise<T> {
    const reader: Reader = { founder: this.#founderOf(orgId), arrivedBytes: 0, takenBytes: 0, hasWaited: false, wakes: [] }
    const whenFree = (wake: () => void): void => void reader.wakes.push(wake)
    try {
      return await work({ take: bytes => this.#takes(reader, bytes), whenFree })
    } finally {
      this.#end(reader)
    }
  }

  /** Returns room for a reply that cannot wait. It contains no bytes yet. */
  open(orgId: number): HeldReply {
    return new HeldReply(this, this.#founderOf(orgId))
  }

  /** Takes room, or gives it back for negative `bytes`. Returns the reason when there is none, otherwise null. */
  take(founder: string, bytes: number): HeldRefusal | null {
    const own = this.#repliesOf(founder)
    const why = bytes <= 0 ? null : this.#lacks(own, bytes)
    if (why === null) this.#add(own, bytes)
    else this.refusals[why]++
    this.#forget(founder, own)
    if (bytes < 0) this.#wakeAll()
    return why
  }

  #takes(reader: Reader, bytes: number): boolean {
    const arrivedBytes = reader.arrivedBytes + bytes
    const needed = Math.max(0, arrivedBytes - freeHeldBytes) - reader.takenBytes
    if (needed > 0) {
      const own = this.#repliesOf(reader.founder)
      own.readers.add(reader)
      const [oldest] = own.readers
      if (reader !== oldest && this.#lacks(own, needed) !== null) {
        reader.hasWaited = true
        this.waits++
        return false
      }
      this.#add(own, needed)
      reader.takenBytes += needed
    }
    if (needed < 0) this.#giveBack(reader, -needed)
    reader.arrivedBytes = arrivedBytes
    // There may also be room for the next reader.
    if (reader.hasWaited) this.#wakeNext(this.#repliesOf(reader.founder))
    reader.hasWaited = false
    return true
  }

  #giveBack(reader: Reader, bytes: number): void {
    this.#add(this.#repliesOf(reader.founder), -bytes)
    reader.takenBytes -= bytes
    this.#wakeAll()
  }

  #end(reader: Reader): void {
    const own = this.#byFounder.get(reader.founder)
    reader.wakes = []
    if (own === undefined || !own.readers.delete(reader)) return
    this.#add(own, -reader.takenBytes)
    this.#forget(reader.founder, own)
    this.#wakeAll()
  }

  #lacks(own: FounderReplies, bytes: number): HeldRefusal | null {
    const { totalBytes, founderPercent } = this.limits
    if (this.#bytes + bytes > totalBytes) return 'total'
    const others = this.#bytes - own.bytes
    return own.bytes + bytes > ((totalBytes - others) * founderPercent) / 100 ? 'organisation' : null
  }

  #add(own: FounderReplies, bytes: number): void {
    own.bytes += bytes
    this.#bytes += bytes
  }

  #repliesOf(founder: string): FounderReplies {
    const known = this.#byFounder.get(founder)
    if (known !== undefined) return known
    const made: FounderReplies = { bytes: 0, readers: new Set() }
    this.#byFounder.set(founder, made)
    return made
  }

  #forget(founder: string, own: FounderReplies): void {
    if (own.bytes === 0 && own.readers.size === 0) this.#byFounder.delete(founder)
  }

  #wakeAll(): void {
    for (const each of this.#byFounder.values()) this.#wakeNext(each)
  }

  /** Wakes the oldest waiting reader of a founder. */
  #wakeNext(own: FounderReplies): void {
    for (const reader of own.readers) {
      if (reader.wakes.length === 0) continue
      for (const wake of reader.wakes.splice(0)) wake()
      return
    }
  }
}

/** Counts the kept bytes of one reply that cannot wait. */
export class HeldReply {
  readonly #room: HeldReplies
  readonly #founder: string
  #takenBytes = 0

  constructor(room: HeldReplies, founder: string) {
    this.#room = room
    this.#founder = founder
  }

  /** Sets the number of kept bytes of the reply. Returns the reason when there is no room for them, otherwise null. */
  keeps(bytes: number): HeldRefusal | null {
    const wantedBytes = bytes > freeHeldBytes ? bytes - freeHeldBytes : 0
    if (wantedBytes === this.#takenBytes) return null
    const why = this.#room.take(this.#founder, wantedBytes - this.#takenBytes)
    if (why === null) this.#takenBytes = wantedBytes
    return why
  }

  /** Gives all room back, because no byte of the reply is kept any more. */
  release(): void {
    this.keeps(0)
  }
}
