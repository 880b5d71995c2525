import type { Model, ModelKind } from '../steps/use-models.ts'
import { type Callable, callableOf } from './callable.ts'

/** What the address of the list of models says. */

export const modelKinds = ['chat', 'virtual', 'embedding', 'image', 'transcription', 'speech', 'rerank', 'moderation'] as const satisfies readonly ModelKind[]

export interface ModelsSearch {
  readonly q?: string
  readonly kind?: ModelKind
  /** True: only models that a call can reach now. */
  readonly ready?: true
  /** True: only models with a route in India. */
  readonly india?: true
  /** The model that is open beside the list. */
  readonly model?: string
}

/** A model of the list, with whether a call can reach it. */
export interface ModelRow {
  readonly model: Model
  readonly callable: Callable
}

/** Returns the models that the filters choose, those that can be called first. The gateway has one reply for all models, so they are searched here. */
export function chosenModels(models: readonly Model[], ownKeys: ReadonlySet<string>, { q, kind, ready, india }: ModelsSearch): readonly ModelRow[] {
  const words = (q ?? '').toLowerCase()
  const rows = models
    .filter(model => (kind === undefined || model.kind === kind) && `${model.id} ${model.owned_by}`.toLowerCase().includes(words))
    .filter(model => india !== true || model.kind === 'virtual' || model.routes.some(({ residency }) => residency === 'india'))
    .map(model => ({ model, callable: callableOf(model, ownKeys) }))
    .filter(({ callable }) => ready !== true || callable.isReady)
  return [...rows.filter(({ callable }) => callable.isReady), ...rows.filter(({ callable }) => !callable.isReady)]
}
