/** The messages between the supervisor and its workers. */
import type { MetricSnapshot } from '../../platform/observe/metrics.ts'

/** The metrics of one worker, with its number. */
export interface WorkerFigures {
  readonly worker: number
  readonly metrics: readonly MetricSnapshot[]
}

export type FromWorker =
  /** The worker can serve. `banner` is the text that a start prints. */
  | { readonly kind: 'ready'; readonly banner: string }
  /** The worker confirms the connection with this id. */
  | { readonly kind: 'taken'; readonly id: number }
  /** The worker requests the metrics of all workers, because a client asked this worker for them. */
  | { readonly kind: 'figures-of-all?'; readonly id: number }
  | { readonly kind: 'figures'; readonly id: number; readonly metrics: readonly MetricSnapshot[] }

export type ToWorker =
  /** A client's connection. The socket is sent with the message. */
  | { readonly kind: 'connection'; readonly id: number }
  /** Another worker has replaced this one. The worker lets its open connections end and then stops. */
  | { readonly kind: 'retire' }
  | { readonly kind: 'figures?'; readonly id: number }
  | { readonly kind: 'figures-of-all'; readonly id: number; readonly all: readonly WorkerFigures[] }
