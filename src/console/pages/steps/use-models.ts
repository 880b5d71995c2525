import { useQuery } from '@tanstack/react-query'
import type { ReplyOf } from '../../api/call.ts'
import { apiQuery, queryClient } from '../../api/queries.ts'
import { shortMoney } from '../../ui/format/numbers.ts'
import type { ComboOption } from '../../ui/forms/combobox.tsx'
import { text } from './text.ts'

export type Model = ReplyOf<'listModels'>['data'][number]
export type ModelKind = Model['kind']

const foundMax = 40

/** Returns whether a model has a route that works now. */
export const isReachable = ({ kind, routes }: Model): boolean => kind === 'virtual' || routes.some(({ available, configured }) => available && configured)

/** Returns the models by id. Undefined while they are read. */
export function useModelsById(): ReadonlyMap<string, Model> | undefined {
  const models = useQuery({ ...apiQuery('listModels'), select: ({ data }) => new Map(data.map(one => [one.id, one])) })
  return models.data
}

/** The providers that a step may name: those of the routes of its model, and the organisation's own servers for it. */
export function useStepProviders(): (model: string) => readonly { readonly id: string; readonly label: string }[] {
  const models = useModelsById()
  const servers = useQuery(apiQuery('listCustomEndpoints'))
  return model => [
    ...[...new Set((models?.get(model)?.routes ?? []).map(({ provider }) => provider))].map(id => ({ id, label: id })),
    ...(servers.data?.endpoints ?? []).filter(one => one.model === model).map(one => ({ id: one.provider_ref, label: `${one.name} (${text.ownServer})` })),
  ]
}

function hintOf(model: Model): string {
  const { kind, pricing, residency } = model
  if (kind === 'virtual') return text.chooses
  const place = residency === 'india' ? ` · ${text.india}` : ''
  if (!isReachable(model)) return `${text.noRoute}${place}`
  return pricing.inputINRPerMtok === 0 && pricing.outputINRPerMtok === 0
    ? place.slice(3)
    : `${shortMoney(pricing.inputINRPerMtok)} / ${shortMoney(pricing.outputINRPerMtok)} a million${place}`
}

/** Finds models by a part of their id, those that work now first. The gateway has one reply for all models, so they are searched here. */
async function found(typed: string, fits: (model: Model) => boolean): Promise<ComboOption[]> {
  const { data } = await queryClient.ensureQueryData(apiQuery('listModels'))
  const words = typed.trim().toLowerCase()
  const fitting = data.filter(model => fits(model) && model.id.toLowerCase().includes(words))
  const sorted = [...fitting.filter(isReachable), ...fitting.filter(model => !isReachable(model))]
  return sorted.slice(0, foundMax).map(model => ({ value: model.id, label: model.id, hint: hintOf(model) }))
}

/** Finds models that have a chain of their own. A virtual model has none, because it chooses among others. */
export const findChainModels = (typed: string): Promise<ComboOption[]> => found(typed, ({ kind }) => kind !== 'virtual')

/** Finds chat models, without those that choose among others. */
export const findChatModels = (typed: string): Promise<ComboOption[]> => found(typed, ({ kind }) => kind === 'chat')

/** Finds models that a call or a step may name. A step leads to models of the kind of its chain, and a preset chooses among chat models. */
export async function findModels(typed: string, kind?: ModelKind): Promise<ComboOption[]> {
  const options = await found(typed, model => kind === undefined || model.kind === kind || (kind === 'chat' && model.kind === 'virtual'))
  const own = typed.trim()
  // A model that only the organisation's own key reaches is in no list.
  return own.includes('/') && !options.some(({ value }) => value === own) ? [...options, { value: own, label: own, hint: text.asTyped }] : options
}
