/** The messages between the flusher and the thread that does its work. Decision 0530 gives the reasons. */
import type { MessagePort } from 'node:worker_threads'
import type { SentError } from '../../../../platform/db/thread/db-messages.ts'
import type { LogFields } from '../../../../platform/observe/log.ts'
import type { ChargedEvent } from '../../engine/admission.ts'
import type { AmountsById, FlushAnswer, JournalRange } from '../flush-work.ts'
import type { AdoptionRound } from '../janitor.ts'
import type { JournalRecord } from '../journal-records.ts'

/** How the thread starts. */
export interface FlushThreadStart {
  /** The folder of the journals. */
  readonly folder: string
  /** The address of the database. Null: the main thread serves its database over `database`. */
  readonly address: string | null
  readonly database: MessagePort | null
}

/** Facts that only the main thread knows. They come with every request. */
export interface FlushFacts {
  /** The time of the database's clock in Unix milliseconds. */
  readonly nowMs: number
  /** The public address of the gateway, for links in mails. */
  readonly baseUrl: string
}

export type FlushRequest<E extends ChargedEvent> =
  | { readonly kind: 'flush'; readonly range: JournalRange }
  | { readonly kind: 'write'; readonly processId: bigint; readonly record: JournalRecord<E> }
  | { readonly kind: 'lost'; readonly range: JournalRange }
  | { readonly kind: 'adopt'; readonly round: AdoptionRound }

/** What the thread answers to a request. */
export type FlushReply = FlushAnswer | AmountsById | number

export type ToFlushThread<E extends ChargedEvent> =
  | { readonly kind: 'ask'; readonly id: number; readonly request: FlushRequest<E>; readonly facts: FlushFacts }
  | { readonly kind: 'close' }

export type FromFlushThread =
  | { readonly kind: 'answered'; readonly id: number; readonly answer: FlushReply }
  | { readonly kind: 'failed'; readonly id: number; readonly error: SentError }
  | { readonly kind: 'log'; readonly level: 'info' | 'warn' | 'error'; readonly event: string; readonly fields: LogFields; readonly error: SentError | null }
