import { createHmac } from 'node:crypto'
import { hashKey } from '../../../platform/values/hash-seed.ts'

/** A hash of 96 bits: two ids of a batch share one with a probability below 10⁻¹⁹, and nobody outside of this process can choose two that do. */
const hashBytes = 12

/** The custom ids of one batch. It keeps a short keyed hash of each, because 50,000 ids may have 25 MB. */
export class CustomIds {
  readonly #hashes = new Set<string>()

  /** Adds an id. Returns false when it is there already. */
  add(id: string): boolean {
    // The text is made of the bytes. A part of a longer text would keep the longer one.
    const hash = createHmac('sha256', hashKey).update(id).digest().toString('latin1', 0, hashBytes)
    if (this.#hashes.has(hash)) return false
    this.#hashes.add(hash)
    return true
  }
}
