/**
 * The memory of one process for prompts and answers that wait to be written. The organisations of one founder together get only a part of this memory.
 * Decision 0494 gives the reasons.
 */

/** The most bytes of content that this process keeps. Beyond that, calls are left out of the log. */
const totalBytes = 64 * 1024 * 1024
/** The part of the total that founders with more than `firstBytes` may use. The rest is reserved for the others. */
const sharedBytes = Math.floor(totalBytes * 0.9)
/** The content that a founder may keep whatever the others keep, while the total has room. */
const firstBytes = 256 * 1024

export class ContentRoom {
  readonly #byFounder = new Map<string, number>()
  #bytes = 0

  /** Takes room. Returns false, and takes nothing, when the founder's share or the total has no room. A founder has half of what others leave free. */
  take(founder: string, bytes: number): boolean {
    const own = this.#byFounder.get(founder) ?? 0
    const share = Math.max(firstBytes, (sharedBytes - (this.#bytes - own)) / 2)
    if (this.#bytes + bytes > totalBytes || own + bytes > share) return false
    this.#set(founder, own + bytes)
    this.#bytes += bytes
    return true
  }

  /** Gives room back. */
  give(founder: string, bytes: number): void {
    this.#set(founder, (this.#byFounder.get(founder) ?? 0) - bytes)
    this.#bytes -= bytes
  }

  #set(founder: string, bytes: number): void {
    if (bytes > 0) this.#byFounder.set(founder, bytes)
    else this.#byFounder.delete(founder)
  }
}
