/** The steps of a chain while a person edits them. */
import type { ReplyOf } from '../../api/call.ts'

/** A step as the gateway keeps it. Without a provider, all routes of the model are tried in their usual order. */
export type Step = ReplyOf<'getChain'>['steps'][number]

/** A step with a name of its own, so that a row keeps its element and its focus when it moves. */
export interface DraftStep {
  readonly id: number
  readonly model: string
  readonly provider: string | null
}

/** At most this many steps are in a chain. */
export const stepsMax = 10

let nextId = 1

/** Returns a step for the editor. */
export const draftStep = ({ model, provider }: Step): DraftStep => ({ id: nextId++, model, provider: provider ?? null })

/** Returns the steps as the gateway takes them. */
export const stepsOf = (steps: readonly DraftStep[]): Step[] => steps.map(({ model, provider }) => (provider === null ? { model } : { model, provider }))

/** Returns whether two chains have the same steps in the same order. */
export const sameSteps = (a: readonly Step[], b: readonly Step[]): boolean =>
  a.length === b.length && a.every(({ model, provider }, place) => model === b[place]?.model && (provider ?? null) === (b[place]?.provider ?? null))

/** Returns the list with one thing moved to another place. */
export function moved<T>(list: readonly T[], from: number, to: number): readonly T[] {
  const thing = list[from]
  if (thing === undefined || from === to || to < 0 || to >= list.length) return list
  const rest = list.filter((_, place) => place !== from)
  return [...rest.slice(0, to), thing, ...rest.slice(to)]
}

/** Writes a step in one line. */
export const stepText = ({ model, provider }: { readonly model: string; readonly provider?: string | null }): string =>
  provider === undefined || provider === null ? model : `${model} on ${provider}`
