/** What the supervisor and its workers tell each other over the channel between their processes. */
import type { MetricSnapshot } from '../../platform/observe/metrics.ts'

/** The figures of one worker, by its number. */
export interface WorkerFigures {
  readonly worker: number
  readonly metrics: readonly MetricSnapshot[]
}

export type FromWorker =
  /** It serves. `banner` is what a start prints. */
  | { readonly kind: 'ready'; readonly banner: string }
  /** The connection of that id is in its hands. */
  | { readonly kind: 'taken'; readonly id: number }
  /** Somebody asks this worker for the figures of all. */
  | { readonly kind: 'figures-of-all?'; readonly id: number }
  | { readonly kind: 'figures'; readonly id: number; readonly metrics: readonly MetricSnapshot[] }

export type ToWorker =
  /** A connection of a client; its socket comes with the message. */
  | { readonly kind: 'connection'; readonly id: number }
  /** Another worker has taken its place: let the open connections end, then stop. */
  | { readonly kind: 'retire' }
  | { readonly kind: 'figures?'; readonly id: number }
  | { readonly kind: 'figures-of-all'; readonly id: number; readonly all: readonly WorkerFigures[] }
