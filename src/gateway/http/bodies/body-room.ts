/**
 * How much of request bodies a process holds: bytes of all of them together, a share of it for each organisation, and the least speed at
 * which they must come. A body counts from its first byte, or from its announced length, until its response has ended, because calls keep
 * what they were sent for as long as they run. Decision 0374 says why.
 */
import type { Clock } from '../../../platform/clock.ts'
import { fail, type GatewayError } from '../../../platform/errors.ts'

export interface BodyRoomLimits {
  /** Bytes of all bodies together. */
  readonly totalBytes: number
  /** Bytes of the bodies of one organisation. Callers without one share one share. */
  readonly orgBytes: number
  /** Least speed of an upload on average; 0: none. */
  readonly leastBytesPerSecond: number
}

/** Why bodies were refused. */
export type BodyRefusal = 'total' | 'organisation' | 'slow'

/** For so long an upload may come as slowly as it will: connections begin slowly, and so do people's networks. */
export const uploadGraceMs = 10_000
/** How often uploads are looked at. */
const sweepMs = 1000
/** When a caller that found no room may come back. */
const retryAfterSeconds = 2

/** The room of one process. */
export class BodyRoom {
  /** How often a body was refused, by reason. */
  readonly refusals: Record<BodyRefusal, number> = { total: 0, organisation: 0, slow: 0 }
  readonly limits: BodyRoomLimits
  readonly #clock: Pick<Clock, 'monotonicMs' | 'every'>
  readonly #byOrg = new Map<number, number>()
  readonly #coming = new Set<Upload>()
  #bytes = 0
  #stop: (() => void) | null = null

  constructor(limits: BodyRoomLimits, clock: Pick<Clock, 'monotonicMs' | 'every'>) {
    this.limits = limits
    this.#clock = clock
  }

  /** Bytes of all bodies that are held. */
  get bytes(): number {
    return this.#bytes
  }

  /** The body of a request, of which nothing has come yet. */
  open(orgId: number | null): Upload {
    return new Upload(this, orgId ?? 0)
  }

  /** Takes room for bytes. The refusal when there is none. */
  take(orgId: number, bytes: number): GatewayError | null {
    const ofOrg = (this.#byOrg.get(orgId) ?? 0) + bytes
    const { orgBytes, totalBytes } = this.limits
    if (ofOrg > orgBytes) return this.#refuse('organisation', `The request bodies of your organisation that are under way come to more than ${orgBytes} bytes.`)
    if (this.#bytes + bytes > totalBytes)
      return this.#refuse('total', `The request bodies that this process has under way come to more than ${totalBytes} bytes.`)
    this.#bytes += bytes
    this.#byOrg.set(orgId, ofOrg)
    return null
  }

  give(orgId: number, bytes: number): void {
    this.#bytes -= bytes
    const left = (this.#byOrg.get(orgId) ?? 0) - bytes
    if (left > 0) this.#byOrg.set(orgId, left)
    else this.#byOrg.delete(orgId)
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
      upload.stop(this.#refuse('slow', `The body comes more slowly than ${leastBytesPerSecond} bytes a second. Send it anew over a better connection.`))
    }
    if (this.#coming.size > 0) return
    this.#stop?.()
    this.#stop = null
  }

  #refuse(why: BodyRefusal, what: string): GatewayError {
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
  readonly #orgId: number
  #heldBytes = 0
  #isReleased = false

  constructor(room: BodyRoom, orgId: number) {
    this.#room = room
    this.#orgId = orgId
  }

  /** Room for a body of announced length, before its first byte. The refusal when there is none. */
  announce(bytes: number): GatewayError | null {
    return this.#hold(bytes)
  }

  /** Watches the speed until `arrived`. */
  begin(stop: (error: GatewayError) => void): void {
    this.stop = stop
    this.startedMs = this.#room.watch(this)
  }

  /** Counts bytes that have come. The refusal when there is no room for them. */
  count(bytes: number): GatewayError | null {
    this.receivedBytes += bytes
    return this.receivedBytes <= this.#heldBytes ? null : this.#hold(this.receivedBytes - this.#heldBytes)
  }

  /** Nothing more comes. */
  arrived(): void {
    this.#room.unwatch(this)
  }

  /** Gives the room back. A second time does nothing. */
  release(): void {
    this.#isReleased = true
    this.#room.unwatch(this)
    if (this.#heldBytes > 0) this.#room.give(this.#orgId, this.#heldBytes)
    this.#heldBytes = 0
  }

  #hold(bytes: number): GatewayError | null {
    if (this.#isReleased || bytes === 0) return null
    const refused = this.#room.take(this.#orgId, bytes)
    if (refused === null) this.#heldBytes += bytes
    return refused
  }
}
