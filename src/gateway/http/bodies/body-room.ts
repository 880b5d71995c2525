/**
 * How much of request bodies a process holds: bytes of all of them together, a share of it for the organisations of each founder, and the least speed at
 * which they must come. The bytes of a body count from when they arrive until its response has ended, because calls keep what they were sent
 * for as long as they run. Small bodies have a reserve that large ones do not take. Decisions 0374 and 0465 say why.
 */
import type { Clock } from '../../../platform/clock.ts'
import { fail, type GatewayError } from '../../../platform/errors.ts'
import { isTooFine, tooFine } from './pieces.ts'
import { SmallReserve, smallBytes } from './small-reserve.ts'

export interface BodyRoomLimits {
  /** Bytes of all bodies together, the reserve for small ones apart. */
  readonly totalBytes: number
  /** Bytes of the bodies of one founder's organisations. Callers without an organisation share one share. */
  readonly orgBytes: number
  /** Least speed of an upload on average; 0: none. */
  readonly leastBytesPerSecond: number
}

/** Why bodies were refused. */
export type BodyRefusal = 'total' | 'organisation' | 'slow' | 'pieces'

/** For so long an upload may come as slowly as it will: connections begin slowly, and so do people's networks. */
export const uploadGraceMs = 10_000
/** How often uploads are looked at. */
const sweepMs = 1000
/** When a caller that found no room may come back. */
const retryAfterSeconds = 2

/** In place of a founder: callers without an organisation. */
const nobody = 'nobody'

/** The room of one process. */
export class BodyRoom {
  /** How often a body was refused, by reason. */
  readonly refusals: Record<BodyRefusal, number> = { total: 0, organisation: 0, slow: 0, pieces: 0 }
  readonly limits: BodyRoomLimits
  readonly #clock: Pick<Clock, 'monotonicMs' | 'every'>
  readonly #founderOf: (orgId: number) => string
  readonly #byFounder = new Map<string, number>()
  readonly #reserve: SmallReserve
  readonly #coming = new Set<Upload>()
  #bytes = 0
  #stop: (() => void) | null = null

  /** `founderOf` says who founded an organisation. Left out: each organisation has a founder of its own. */
  constructor(limits: BodyRoomLimits, clock: Pick<Clock, 'monotonicMs' | 'every'>, founderOf: (orgId: number) => string = String) {
    this.limits = limits
    this.#founderOf = founderOf
    this.#clock = clock
    this.#reserve = new SmallReserve(limits.totalBytes)
  }

  /** Bytes of all bodies that are held. */
  get bytes(): number {
    return this.#bytes + this.#reserve.bytes
  }

  /** The body of a request, of which nothing has come yet. */
  open(orgId: number | null): Upload {
    return new Upload(this, orgId === null ? nobody : this.#founderOf(orgId))
  }

  /** Why there is no room for so many bytes more of a founder; null: there is. */
  lacks(founder: string, bytes: number): 'organisation' | 'total' | null {
    const { orgBytes, totalBytes } = this.limits
    if ((this.#byFounder.get(founder) ?? 0) + bytes > orgBytes) return 'organisation'
    return this.#bytes + bytes > totalBytes ? 'total' : null
  }

  /** Takes room for bytes that have arrived. Why there is none, otherwise null. */
  take(founder: string, bytes: number): 'organisation' | 'total' | null {
    const why = this.lacks(founder, bytes)
    if (why !== null) return why
    this.#bytes += bytes
    this.#byFounder.set(founder, (this.#byFounder.get(founder) ?? 0) + bytes)
    return null
  }

  /** Takes room of the reserve for bytes of a small body. False: there is none. */
  takeReserve(founder: string, bytes: number): boolean {
    return this.#reserve.take(founder, bytes)
  }

  /** Gives room back: of all bodies, and of the reserve. */
  give(founder: string, bytes: number, reserveBytes: number): void {
    if (reserveBytes > 0) this.#reserve.give(founder, reserveBytes)
    this.#bytes -= bytes
    const left = (this.#byFounder.get(founder) ?? 0) - bytes
    if (left > 0) this.#byFounder.set(founder, left)
    else this.#byFounder.delete(founder)
  }

  /** The refusal of a body for which there is no room; it is counted. */
  refusal(why: 'organisation' | 'total'): GatewayError {
    const { orgBytes, totalBytes } = this.limits
    return why === 'organisation'
      ? this.#refuse(why, `The request bodies of your organisation and the others of its founder that are under way come to more than ${orgBytes} bytes.`)
      : this.#refuse(why, `The request bodies that this process has under way come to more than ${totalBytes} bytes.`)
  }

  /** Counts a body that comes in pieces which are too small, and returns its refusal. */
  refusePieces(): GatewayError {
    this.refusals.pieces++
    return tooFine()
  }

  /** Looks at the speed of an upload from now on. One ticker serves all uploads; it runs while there are any. */
  watch(upload: Upload): number {
    this.#coming.add(upload)
    this.#stop ??= this.#clock.every(sweepMs, () => this.#sweep())
    return this.#clock.monotonicMs()
  }

  unwatch(upload: Upload): void {
    this.#coming.delete(upload)
  }

  #sweep(): void {
    const nowMs = this.#clock.monotonicMs()
    const { leastBytesPerSecond } = this.limits
    for (const upload of this.#coming) {
      const dueBytes = ((nowMs - upload.startedMs - uploadGraceMs) / 1000) * leastBytesPerSecond
      if (upload.receivedBytes >= dueBytes) continue
      this.#coming.delete(upload)
      upload.stop(this.#refuse('slow', `The body comes more slowly than ${leastBytesPerSecond} bytes a second. Send it again over a better connection.`))
    }
    if (this.#coming.size > 0) return
    this.#stop?.()
    this.#stop = null
  }

  #refuse(why: Exclude<BodyRefusal, 'pieces'>, what: string): GatewayError {
    this.refusals[why]++
    const rest = why === 'slow' ? '' : ' Try again shortly.'
    return fail('bodies_refused', { message: what + rest, retryAfterSeconds })
  }
}

/** One body: what of it has come, and the room that it takes. */
export class Upload {
  receivedBytes = 0
  startedMs = 0
  /** Ends the reading with this error. */
  stop: (error: GatewayError) => void = () => {}
  readonly #room: BodyRoom
  readonly #founder: string
  #heldBytes = 0
  #reserveBytes = 0
  #announcedBytes = 0
  #pieces = 0
  #isReleased = false

  constructor(room: BodyRoom, founder: string) {
    this.#room = room
    this.#founder = founder
  }

  /**
   * A length that the client has announced. The refusal when so much does not fit beside what has arrived of others; a small body always may
   * come. It takes no room, because what is announced may never come.
   */
  announce(bytes: number): GatewayError | null {
    this.#announcedBytes = bytes
    const why = bytes <= smallBytes ? null : this.#room.lacks(this.#founder, bytes)
    return why === null ? null : this.#room.refusal(why)
  }

  /** Watches the speed until `arrived`. */
  begin(stop: (error: GatewayError) => void): void {
    this.stop = stop
    this.startedMs = this.#room.watch(this)
  }

  /** Counts a piece that has come. The refusal when there is no room for it, or when the pieces are too small. */
  count(bytes: number): GatewayError | null {
    this.receivedBytes += bytes
    this.#pieces++
    if (isTooFine(this.#pieces, this.receivedBytes)) return this.#room.refusePieces()
    if (this.#isReleased) return null
    const isSmall = Math.max(this.receivedBytes, this.#announcedBytes) <= smallBytes
    // What is not small any more leaves the reserve.
    const takenBytes = isSmall ? bytes : bytes + this.#reserveBytes
    const why = this.#room.take(this.#founder, takenBytes)
    if (why === null) {
      this.#heldBytes += takenBytes
      if (takenBytes > bytes) this.#leaveReserve()
      return null
    }
    if (!isSmall || !this.#room.takeReserve(this.#founder, bytes)) return this.#room.refusal(why)
    this.#reserveBytes += bytes
    return null
  }

  /** Nothing more comes. */
  arrived(): void {
    this.#room.unwatch(this)
  }

  /** Gives the room back. A second time does nothing. */
  release(): void {
    this.#isReleased = true
    this.#room.unwatch(this)
    this.#room.give(this.#founder, this.#heldBytes, this.#reserveBytes)
    this.#heldBytes = 0
    this.#reserveBytes = 0
  }

  #leaveReserve(): void {
    this.#room.give(this.#founder, 0, this.#reserveBytes)
    this.#reserveBytes = 0
  }
}
