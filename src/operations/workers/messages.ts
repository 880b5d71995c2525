/** The messages between the supervisor and its workers. */
import type { MetricSnapshot } from '../../platform/observe/metrics.ts'

/** The metrics of one worker, with its number. */
export interface WorkerFigures {
  readonly worker: number
  readonly metrics: readonly MetricSnapshot[]
}

export type FromWorker =
  /** The worker serves. `banner` is the text that a start prints. */
  | { readonly kind: 'ready'; readonly banner: string }
  /** The worker has the connection with this id. */
  | { readonly kind: 'taken'; readonly id: number }
  /** A client asks this worker for the metrics of all workers. */
  | { readonly kind: 'figures-of-all?'; readonly id: number }
  | { readonly kind: 'figures'; readonly id: number; readonly metrics: readonly MetricSnapshot[] }

export type ToWorker =
  /** A client's connection. The socket is sent with the message. */
  | { readonly kind: 'connection'; readonly id: number }
  /** Another worker has replaced this one: let the open connections end, then stop. */
  | { readonly kind: 'retire' }
  | { readonly kind: 'figures?'; readonly id: number }
  | { readonly kind: 'figures-of-all'; readonly id: number; readonly all: readonly WorkerFigures[] }
