/**
 * How much of request bodies a process holds: bytes of all of them together, a share of it for the organisations of each founder, and the least speed at
 * which they must come. A body counts from its first byte, or from its announced length, until its response has ended, because calls keep
 * what they were sent for as long as they run. Decision 0374 says why.
 */
import type { Clock } from '../../../platform/clock.ts'
import { fail, type GatewayError } from '../../../platform/errors.ts'

export interface BodyRoomLimits {
  /** Bytes of all bodies together. */
  readonly totalBytes: number
  /** Bytes of the bodies of one founder's organisations. Callers without an organisation share one share. */
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

/** In place of a founder: callers without an organisation. */
const nobody = 'nobody'

/** The room of one process. */
export class BodyRoom {
  /** How often a body was refused, by reason. */
  readonly refusals: Record<BodyRefusal, number> = { total: 0, organisation: 0, slow: 0 }
  readonly limits: BodyRoomLimits
  readonly #clock: Pick<Clock, 'monotonicMs' | 'every'>
  readonly #founderOf: (orgId: number) => string
  readonly #byFounder = new Map<string, number>()
  readonly #coming = new Set<Upload>()
  #bytes = 0
  #stop: (() => void) | null = null

  /** `founderOf` says who founded an organisation. Left out: each organisation has a founder of its own. */
  constructor(limits: BodyRoomLimits, clock: Pick<Clock, 'monotonicMs' | 'every'>, founderOf: (orgId: number) => string = String) {
    this.limits = limits
    this.#founderOf = founderOf
    this.#clock = clock
  }

  /** Bytes of all bodies that are held. */
  get bytes(): number {
    return this.#bytes
  }

  /** The body of a request, of which nothing has come yet. */
  open(orgId: number | null): Upload {
    return new Upload(this, orgId === null ? nobody : this.#founderOf(orgId))
  }

  /** Takes room for bytes. The refusal when there is none. */
  take(founder: string, bytes: number): GatewayError | null {
    const ofFounder = (this.#byFounder.get(founder) ?? 0) + bytes
    const { orgBytes, totalBytes } = this.limits
    if (ofFounder > orgBytes)
      return this.#refuse(
        'organisation',
        `The request bodies of your organisation and the others of its founder that are under way come to more than ${orgBytes} bytes.`,
      )
    if (this.#bytes + bytes > totalBytes)
      return this.#refuse('total', `The request bodies that this process has under way come to more than ${totalBytes} bytes.`)
    this.#bytes += bytes
    this.#byFounder.set(founder, ofFounder)
    return null
  }

  give(founder: string, bytes: number): void {
    this.#bytes -= bytes
    const left = (this.#byFounder.get(founder) ?? 0) - bytes
    if (left > 0) this.#byFounder.set(founder, left)
    else this.#byFounder.delete(founder)
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
  readonly #founder: string
  #heldBytes = 0
  #isReleased = false

  constructor(room: BodyRoom, founder: string) {
    this.#room = room
    this.#founder = founder
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
    if (this.#heldBytes > 0) this.#room.give(this.#founder, this.#heldBytes)
    this.#heldBytes = 0
  }

  #hold(bytes: number): GatewayError | null {
    if (this.#isReleased || bytes === 0) return null
    const refused = this.#room.take(this.#founder, bytes)
    if (refused === null) this.#heldBytes += bytes
    return refused
  }
}
