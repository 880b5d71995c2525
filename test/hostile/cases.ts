import type { Field, Got } from './field.ts'

/** One row of the hostile tests. */
export interface HostileCase {
  readonly name: string
  /** True: the row also runs in the short form. */
  readonly isShort: boolean
  /** Sends the hostile requests. `expects` checks every returned answer. Throws when an answer breaks a promise in another way. */
  run(field: Field): Promise<readonly Got[]>
  /** Returns whether an answer is acceptable. By default there must be an answer, and not a 500. */
  expects?(got: Got): boolean
}

export const mib = 1024 * 1024

/** Accepts any answer except 500. */
export const isAnswered = (got: Got): boolean => got.status !== 0 && got.status !== 500
/** Accepts a refusal: 4xx, or 503. */
export const isRefused = (got: Got): boolean => (got.status >= 400 && got.status < 500) || got.status === 503
/** Accepts everything except 500. The connection may have been cut, because the caller or the provider broke the rules first. */
export const isAnything = (got: Got): boolean => got.status !== 500

export const json = { 'content-type': 'application/json' }

/** Returns the text repeated until it has this number of bytes. */
export function repeated(text: string, bytes: number): Buffer {
  return Buffer.alloc(bytes - (bytes % Buffer.byteLength(text)), text)
}

/** Runs the work `count` times concurrently. */
export const together = <T>(count: number, work: (index: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => work(index)))
