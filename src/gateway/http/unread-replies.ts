/**
 * Bounds the replies that wait in this process because their clients do not read them. There are three bounds: the bytes of all replies together, the bytes of
 * the organisations that one person founded, and a minimum reading speed. A reply that the network accepts immediately is not counted. Decision 0423 says why.
 */
import type { ServerResponse } from 'node:http'
import type { Clock } from '../../platform/clock.ts'

export interface UnreadLimits {
  /** Maximum bytes of all replies together. */
  readonly totalBytes: number
  /**
   * The organisations of one founder may use at most this percentage of the bytes that others leave free. All callers without an organisation together have
   * one share.
   */
  readonly orgPercent: number
  /** Minimum speed at which a client must read. 0 means no minimum. */
  readonly leastBytesPerSecond: number
}

/** The reasons for closing a connection. */
export type UnreadCut = 'total' | 'organisation' | 'slow'

/** A client may read nothing for this time, because people pause their programs and networks have gaps. */
export const readGraceMs = 30_000
/** How often the gateway checks readers. */
const sweepMs = 1_000

interface FounderReaders {
  bytes: number
  /** The reader that waits longest comes first. */
  readonly readers: Set<UnreadReply>
}

/** A reply that waits for its reader. */
export class UnreadReply {
  /** Bytes of the reply in the memory of this process. */
  readonly heldBytes: number
  /** Bytes that have been passed to the socket so far, including those that waited when the reply began to wait. */
  handedBytes: number
  readonly response: ServerResponse
  readonly founder: string
  readonly sinceMs: number

  constructor(response: ServerResponse, founder: string, heldBytes: number, handedBytes: number, sinceMs: number) {
    this.response = response
    this.founder = founder
    this.heldBytes = heldBytes
    this.handedBytes = handedBytes
    this.sinceMs = sinceMs
  }
}

/** The founder under which replies to callers without an organisation count. */
const nobody = 'nobody'

/** The waiting replies of one process. */
export class UnreadReplies {
  /** Number of closed connections by reason. */
  readonly cuts: Record<UnreadCut, number> = { total: 0, organisation: 0, slow: 0 }
  readonly limits: UnreadLimits
  readonly #clock: Pick<Clock, 'monotonicMs' | 'every'>
  readonly #founderOf: (orgId: number) => string
  readonly #byFounder = new Map<string, FounderReaders>()
  #bytes = 0
  #stop: (() => void) | null = null

  /** `founderOf` returns the founder of an organisation. Without it, each organisation has a founder of its own. */
  constructor(limits: UnreadLimits, clock: Pick<Clock, 'monotonicMs' | 'every'>, founderOf: (orgId: number) => string = String) {
    this.limits = limits
    this.#founderOf = founderOf
    this.#clock = clock
  }

  /** Bytes of all waiting replies. */
  get bytes(): number {
    return this.#bytes
  }

  /**
   * Notes that a reply begins to wait. `heldBytes` of it are in memory, and `handedBytes` have been passed to the socket. When there is no room, the
   * connections that have waited longest are closed. They belong to the same founder when its share is full, and otherwise to the founder with the most
   * bytes.
   */
  open(response: ServerResponse, orgId: number | null, heldBytes: number, handedBytes: number): UnreadReply {
    const reply = new UnreadReply(response, orgId === null ? nobody : this.#founderOf(orgId), heldBytes, handedBytes, this.#clock.monotonicMs())
    this.#makeRoom(reply.founder, heldBytes)
    const own = this.#byFounder.get(reply.founder) ?? { bytes: 0, readers: new Set() }
    own.bytes += heldBytes
    own.readers.add(reply)
    this.#byFounder.set(reply.founder, own)
    this.#bytes += heldBytes
    this.#stop ??= this.#clock.every(sweepMs, () => this.#sweep())
    return reply
  }

  /** Notes that a reply no longer waits. A second call does nothing. */
  close(reply: UnreadReply): void {
    const own = this.#byFounder.get(reply.founder)
    if (own === undefined || !own.readers.delete(reply)) return
    own.bytes -= reply.heldBytes
    this.#bytes -= reply.heldBytes
    if (own.readers.size === 0) this.#byFounder.delete(reply.founder)
  }

  /** Counts the remaining bytes of a reply whose writer has already finished, until the bytes are sent. */
  closeWhenSent(response: ServerResponse, orgId: number | null): void {
    if (response.destroyed) return
    const bytes = response.writableLength
    const reply = this.open(response, orgId, bytes, bytes)
    response.once('finish', () => this.close(reply))
    response.once('close', () => this.close(reply))
  }

  /**
   * Counts the bytes of a reply whose writer waits for room itself. Waiting bytes count until the socket has room again, and the bytes that wait after
   * the end until they are sent.
   */
  watchWrites(response: ServerResponse, orgId: number | null): void {
    const { write, end } = response
    let waiting: UnreadReply | null = null
    const over = (): void => {
      if (waiting !== null) this.close(waiting)
      waiting = null
    }
    response.on('drain', over).on('close', over)
    response.write = (...given: unknown[]): boolean => {
      const isTaken = Reflect.apply(write, response, given) as boolean
      if (!isTaken && waiting === null && !response.destroyed) {
        const bytes = response.writableLength
        waiting = this.open(response, orgId, bytes, bytes)
      }
      return isTaken
    }
    response.end = (...given: unknown[]): ServerResponse => {
      Reflect.apply(end, response, given)
      over()
      if (response.writableLength > 0) this.closeWhenSent(response, orgId)
      return response
    }
  }

  #makeRoom(founder: string, bytes: number): void {
    const { totalBytes, orgPercent } = this.limits
    for (let own = this.#byFounder.get(founder); own !== undefined; own = this.#byFounder.get(founder)) {
      const others = this.#bytes - own.bytes
      if (own.bytes + bytes <= ((totalBytes - others) * orgPercent) / 100) break
      this.#cutOldest(own, 'organisation')
    }
    while (this.#bytes > 0 && this.#bytes + bytes > totalBytes) {
      let most: FounderReaders | null = null
      for (const each of this.#byFounder.values()) if (most === null || each.bytes > most.bytes) most = each
      if (most === null) return
      this.#cutOldest(most, 'total')
    }
  }

  #cutOldest({ readers }: FounderReaders, why: UnreadCut): void {
    const [oldest] = readers
    if (oldest !== undefined) this.#cut(oldest, why)
  }

  #cut(reply: UnreadReply, why: UnreadCut): void {
    this.cuts[why]++
    this.close(reply)
    // A response that waits for another response on its connection has no socket of its own, so `response.destroy` would free nothing.
    reply.response.req.socket.destroy()
    reply.response.destroy()
  }

  #sweep(): void {
    const { leastBytesPerSecond } = this.limits
    if (leastBytesPerSecond > 0) {
      const nowMs = this.#clock.monotonicMs()
      for (const { readers } of [...this.#byFounder.values()])
        for (const reply of readers) if (nowMs - reply.sinceMs > readGraceMs + (reply.handedBytes * 1000) / leastBytesPerSecond) this.#cut(reply, 'slow')
    }
    if (this.#byFounder.size > 0) return
    this.#stop?.()
    this.#stop = null
  }
}
