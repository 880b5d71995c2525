/**
 * Limits what this process keeps of replies that come from providers, servers of organisations and memory stores: bytes of all of them together, and a
 * share for the organisations of each founder. A reply that is read as a whole waits for room, so its server waits too; the oldest of a founder always
 * goes on, so every reply comes to its end. What else is kept, of streams for example, is refused without room. Decision 0467 says why.
 */

export interface HeldRepliesLimits {
  /** Bytes of all replies together, without the free part of each. */
  readonly totalBytes: number
  /** The part that one founder's organisations may have of what the others leave free, in percent. */
  readonly founderPercent: number
}

/** Why there is no room: the process has none left, or the founder's share is used up. */
export type HeldRefusal = 'total' | 'organisation'

/** The room of a reader that can wait. It reads one reply, or those to one call. */
export interface RoomOfReply {
  /** Takes room for bytes that have arrived. False: there is none now. A negative number gives room back. */
  take(bytes: number): boolean
  /** Calls `wake` once, when there may be room. */
  whenFree(wake: () => void): void
}

/** The first bytes of each reply are free: nearly all replies and events are shorter, and need one comparison. */
const freeHeldBytes = 64 * 1024

interface Reader {
  readonly founder: string
  /** Bytes that have arrived. */
  arrivedBytes: number
  /** Bytes of them that take room. */
  takenBytes: number
  hasWaited: boolean
  wakes: (() => void)[]
}

interface FounderReplies {
  bytes: number
  /** Readers that take room or wait for it, the oldest first. */
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

  /** `founderOf` returns who founded an organisation. Without it each organisation has a founder of its own. */
  constructor(limits: HeldRepliesLimits, founderOf: (orgId: number) => string = String) {
    this.limits = limits
    this.#founderOf = founderOf
  }

  /** Bytes that take room. */
  get bytes(): number {
    return this.#bytes
  }

  /** Does work that reads the whole replies to one call of the organisation and needs their bytes. The room is given back when the work has ended. */
  async run<T>(orgId: number, work: (room: RoomOfReply) => Promise<T>): Promise<T> {
    const reader: Reader = { founder: this.#founderOf(orgId), arrivedBytes: 0, takenBytes: 0, hasWaited: false, wakes: [] }
    const whenFree = (wake: () => void): void => void reader.wakes.push(wake)
    try {
      return await work({ take: bytes => this.#takes(reader, bytes), whenFree })
    } finally {
      this.#end(reader)
    }
  }

  /** A reply to a call of the organisation that cannot wait, and of which nothing is kept yet. */
  open(orgId: number): HeldReply {
    return new HeldReply(this, this.#founderOf(orgId))
  }

  /** Takes room, or gives it back where `bytes` is negative. Returns the reason when there is none, otherwise null. */
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
    // There may be room for the next one as well.
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

  /** Wakes the oldest reader of a founder that waits. */
  #wakeNext(own: FounderReplies): void {
    for (const reader of own.readers) {
      if (reader.wakes.length === 0) continue
      for (const wake of reader.wakes.splice(0)) wake()
      return
    }
  }
}

/** What is kept of one reply that cannot wait, and the room that it takes. */
export class HeldReply {
  readonly #room: HeldReplies
  readonly #founder: string
  #takenBytes = 0

  constructor(room: HeldReplies, founder: string) {
    this.#room = room
    this.#founder = founder
  }

  /** Says how many bytes of the reply are kept from now on. Returns the reason when there is no room for them, otherwise null. */
  keeps(bytes: number): HeldRefusal | null {
    const wantedBytes = bytes > freeHeldBytes ? bytes - freeHeldBytes : 0
    if (wantedBytes === this.#takenBytes) return null
    const why = this.#room.take(this.#founder, wantedBytes - this.#takenBytes)
    if (why === null) this.#takenBytes = wantedBytes
    return why
  }

  /** Gives the room back: nothing of the reply is kept any more. */
  release(): void {
    this.keeps(0)
  }
}
