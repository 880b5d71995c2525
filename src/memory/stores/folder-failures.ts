/** Errors of the file system as errors of the port of stores. */
import { ObjectStoreError } from './object-store.ts'

/** Returns the code of an error of the file system, or an empty text. */
export function codeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : ''
}

/** Runs the work and converts file system errors to errors of the port. */
export async function guarded<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    if (cause instanceof ObjectStoreError) throw cause
    // biome-ignore lint/style/useErrorCause: the cause goes in the options of this error class.
    if (['ENOSPC', 'EDQUOT'].includes(codeOf(cause))) throw new ObjectStoreError('full', 'the disk of the memory store is full', { cause })
    // biome-ignore lint/style/useErrorCause: the cause goes in the options of this error class.
    throw new ObjectStoreError('unavailable', 'the folder of the memory store cannot be used', { mayHaveHappened: true, cause })
  }
}
