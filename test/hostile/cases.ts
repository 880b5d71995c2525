import type { Field, Got } from './field.ts'

/** One row of the corpus. */
export interface HostileCase {
  readonly name: string
  /** Runs in the short form too. */
  readonly isShort: boolean
  /** Does the harm. What it returns is compared with nothing but `expects`. Throws when the answer breaks a promise. */
  run(field: Field): Promise<readonly Got[]>
  /** What every answer must fulfil; default: no 500, and an answer at all. */
  expects?(got: Got): boolean
}

export const mib = 1024 * 1024

/** An answer at all, and none that says that the gateway broke. */
export const isAnswered = (got: Got): boolean => got.status !== 0 && got.status !== 500
/** Refused for what it is, or for now. */
export const isRefused = (got: Got): boolean => (got.status >= 400 && got.status < 500) || got.status === 503
/** The connection may have been cut, because the caller or the provider broke the rules first. */
export const isAnything = (got: Got): boolean => got.status !== 500

export const json = { 'content-type': 'application/json' }

/** The same piece until so many bytes are reached. */
export function repeated(text: string, bytes: number): Buffer {
  return Buffer.alloc(bytes - (bytes % Buffer.byteLength(text)), text)
}

/** So many at the same time. */
export const together = <T>(count: number, work: (index: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => work(index)))
