/**
 * Bounds the memory that request bodies use in one process. There are three bounds: the bytes of all bodies together, a share for the organisations of each
 * founder, and a minimum upload speed. The bytes of a body count until its response has ended, because a call keeps its body while it runs. Small bodies
 * have a reserve that large bodies cannot take. Decisions 0374 and 0465 say why.
 */
import type { Clock } from '../../../platform/clock.ts'
import { fail, type GatewayError } from '../../../platform/errors.ts'
import { isTooFine } from '../../../platform/loop/fine-pieces.ts'
import { tooFine } from './pieces.ts'
import { SmallReserve, smallBytes } from './small-reserve.ts'

export interface BodyRoomLimits {
  /** Maximum bytes of all bodies together, without the reserve for small ones. */
  readonly totalBytes: number
  /** Maximum bytes of the bodies of one founder's organisations. All callers without an organisation together have one share. */
  readonly orgBytes: number
  /** Minimum average speed of an upload; 0: no minimum. */
  readonly leastBytesPerSecond: number
}

/** The reasons for refusing a body. */
export type BodyRefusal = 'total' | 'organisation' | 'slow' | 'pieces'

/** Time at the start of an upload during which its speed is not checked, because connections start slowly. */
export const uploadGraceMs = 10_000
/** How often the gateway checks the speed of uploads. */
const sweepMs = 1000
/** The `retry-after` of the refusal when there is no room for a body. */
const retryAfterSeconds = 2

/** The founder under which bodies of callers without an organisation count. */
const nobody = 'nobody'

/** The room of one process. */
export class BodyRoom {
  /** Number of refused bodies by reason. */
  readonly refusals: Record<BodyRefusal, number> = { total: 0, organisation: 0, slow: 0, pieces: 0 }
  readonly limits: BodyRoomLimits
  readonly #clock: Pick<Clock, 'monotonicMs' | 'every'>
  readonly #founderOf: (orgId: number) => string
  readonly #byFounder = new Map<string, number>()
  readonly #reserve: SmallReserve
  readonly #coming = new Set<Upload>()
  #bytes = 0
  #stop: (() => void) | null = null

  /** `founderOf` returns the founder of an organisation. Without it, each organisation has a founder of its own. */
  constructor(limits: BodyRoomLimits, clock: Pick<Clock, 'monotonicMs' | 'every'>, founderOf: (orgId: number) => string = String) {
    this.limits = limits
    this.#founderOf = founderOf
    this.#clock = clock
    this.#reserve = new SmallReserve(limits.totalBytes)
  }

  /** Bytes of all bodies in memory, the reserve included. */
  get bytes(): number {
    return this.#bytes + this.#reserve.bytes
  }

  /** Returns the upload of a request. Call it before any byte of the body has arrived. */
  open(orgId: number | null): Upload {
    return new Upload(this, orgId === null ? nobody : this.#founderOf(orgId))
  }

  /** Returns the reason why a founder has no room for this number of additional bytes, or null when there is room. */
  lacks(founder: string, bytes: number): 'organisation' | 'total' | null {
    const { orgBytes, totalBytes } = this.limits
    if ((this.#byFounder.get(founder) ?? 0) + bytes > orgBytes) return 'organisation'
    return this.#bytes + bytes > totalBytes ? 'total' : null
  }

  /** Takes room for bytes that have arrived and returns null. When there is no room, returns the reason and takes nothing. */
  take(founder: string, bytes: number): 'organisation' | 'total' | null {
    const why = this.lacks(founder, bytes)
    if (why !== null) return why
    this.#bytes += bytes
    this.#byFounder.set(founder, (this.#byFounder.get(founder) ?? 0) + bytes)
    return null
  }

  /** Takes room in the reserve for bytes of a small body. Returns false when the reserve has no room. */
  takeReserve(founder: string, bytes: number): boolean {
    return this.#reserve.take(founder, bytes)
  }

  /** Gives back `bytes` of the general room and `reserveBytes` of the reserve. */
  give(founder: string, bytes: number, reserveBytes: number): void {
    if (reserveBytes > 0) this.#reserve.give(founder, reserveBytes)
    this.#bytes -= bytes
    const left = (this.#byFounder.get(founder) ?? 0) - bytes
    if (left > 0) this.#byFounder.set(founder, left)
    else this.#byFounder.delete(founder)
  }

  /** Counts a body for which there is no room, and returns its refusal. */
  refusal(why: 'organisation' | 'total'): GatewayError {
    const { orgBytes, totalBytes } = this.limits
    return why === 'organisation'
      ? this.#refuse(why, `The request bodies of your organisation and the others of its founder that are under way come to more than ${orgBytes} bytes.`)
      : this.#refuse(why, `The request bodies that this process has under way come to more than ${totalBytes} bytes.`)
  }

  /** Counts a body whose pieces are too small, and returns its refusal. */
  refusePieces(): GatewayError {
    this.refusals.pieces++
    return tooFine()
  }

  /** Starts checking the speed of an upload and returns the current time. One timer serves all uploads. It runs only while there are uploads. */
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

/** One body: how much of it has arrived, and the room that it takes. */
export class Upload {
  receivedBytes = 0
  startedMs = 0
  /** Ends the reading with an error. */
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
   * Notes the length that the client announces. Returns a refusal when there is no room for that length. A small body is never refused here. The announced
   * length takes no room yet, because the bytes may never arrive.
   */
  announce(bytes: number): GatewayError | null {
    this.#announcedBytes = bytes
    const why = bytes <= smallBytes ? null : this.#room.lacks(this.#founder, bytes)
    return why === null ? null : this.#room.refusal(why)
  }

  /** Starts checking the speed of the upload. The checks end when `arrived` is called. */
  begin(stop: (error: GatewayError) => void): void {
    this.stop = stop
    this.startedMs = this.#room.watch(this)
  }

  /** Counts a piece that has arrived. Returns a refusal when there is no room for it, or when the pieces are too small. */
  count(bytes: number): GatewayError | null {
    this.receivedBytes += bytes
    this.#pieces++
    if (isTooFine(this.#pieces, this.receivedBytes)) return this.#room.refusePieces()
    if (this.#isReleased) return null
    const isSmall = Math.max(this.receivedBytes, this.#announcedBytes) <= smallBytes
    // A body that is no longer small moves its bytes out of the reserve.
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

  /** Takes room for the memory that the parsed body needs in addition to its bytes. Returns a refusal when there is no room. */
  weigh(bytes: number): GatewayError | null {
    if (bytes === 0 || this.#isReleased) return null
    const why = this.#room.take(this.#founder, bytes)
    if (why === null) this.#heldBytes += bytes
    // A body that is still small together with its parsed values may use the reserve.
    else if (this.receivedBytes + bytes <= smallBytes && this.#room.takeReserve(this.#founder, bytes)) this.#reserveBytes += bytes
    else return this.#room.refusal(why)
    return null
  }

  /** Ends the speed checks, because the body has arrived completely. */
  arrived(): void {
    this.#room.unwatch(this)
  }

  /** Gives the room back. A second call does nothing. */
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
