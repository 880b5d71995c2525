/** The messages between a thread and the database of the main thread, and errors as messages. */
import { DatabaseUnavailableError, type SqlValue } from '../db.ts'

/** A request of a thread. `tx` is the number of its transaction, or 0 outside a transaction. */
export type FromThread =
  | { readonly kind: 'begin'; readonly id: number; readonly tx: number }
  | {
      readonly kind: 'run'
      readonly id: number
      readonly tx: number
      readonly name: string
      readonly text: string
      readonly params: readonly SqlValue[]
      /** True: only the number of affected rows is needed. */
      readonly isExec: boolean
    }
  | { readonly kind: 'end'; readonly id: number; readonly tx: number; readonly isCommit: boolean }

/** The answer to the request with the same id. */
export type ToThread =
  | { readonly kind: 'done'; readonly id: number; readonly rows: readonly unknown[]; readonly count: number }
  | { readonly kind: 'failed'; readonly id: number; readonly error: SentError }

/** An error as a message between threads. A clone of an Error would lose its class and its fields. */
export interface SentError {
  readonly name: string
  readonly message: string
  readonly stack: string | undefined
  /** The SQLSTATE or the code of the system. */
  readonly code: string | undefined
  /** Present for an error that the database reported. */
  readonly severity: string | undefined
}

/** Returns an error as a message. */
export function sentError(thrown: unknown): SentError {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown))
  const field = (name: 'code' | 'severity'): string | undefined => {
    const value: unknown = name in error ? (error as unknown as Record<string, unknown>)[name] : undefined
    return typeof value === 'string' ? value : undefined
  }
  return { name: error.name, message: error.message, stack: error.stack, code: field('code'), severity: field('severity') }
}

/** Returns the error of a message. The classes that callers distinguish are kept, and so are the fields of the database's report. */
export function errorOf({ name, message, stack, code, severity }: SentError): Error {
  const error: Error = name === 'DatabaseUnavailableError' ? new DatabaseUnavailableError(message) : Object.assign(new Error(message), { name })
  return Object.assign(error, stack === undefined ? {} : { stack }, code === undefined ? {} : { code }, severity === undefined ? {} : { severity })
}
