/** What the rules of a key and an agent leave of the catalog. Routing and the public lists ask the same functions. */
import type { CallPolicy, Principal } from '../../platform/security/principal.ts'
import type { CatalogSnapshot, Model } from './model.ts'
import { presetOf } from './virtual-models.ts'

/** Every rule must agree. */
export interface Allowance {
  /** Catalog ids and `provider/model` ids. */
  model(id: string): boolean
  /** Provider ids and `byoe:<slug>`. */
  provider(id: string): boolean
  /** Whether that virtual id may come to mean that model. */
  pick(virtualId: string, modelId: string): boolean
}

interface Lists {
  readonly models: ReadonlySet<string> | null
  readonly providers: ReadonlySet<string> | null
  /** The list of models has virtual ids only: they may pick what they like, or the list would allow nothing. */
  readonly isPresetsOnly: boolean
}

/** Policies live as long as the cached key or agent, so their lists are made into sets once. */
const listsByPolicy = new WeakMap<CallPolicy, Lists | null>()

/** The lists of these rules as one question, or null when no rule names models or providers. */
export function allowanceOf(policies: readonly CallPolicy[]): Allowance | null {
  if (policies.length === 0) return null
  const all = policies.flatMap(policy => listsOf(policy) ?? [])
  if (all.length === 0) return null
  return {
    model: id => all.every(({ models }) => models === null || models.has(id)),
    provider: id => all.every(({ providers }) => providers === null || providers.has(id)),
    pick: (virtualId, modelId) =>
      all.every(({ models, isPresetsOnly }) => models === null || models.has(modelId) || (isPresetsOnly && models.has(canonical(virtualId)))),
  }
}

/** The rules of the caller; a request without credential and a signed-in person have none. */
export const allowanceOfCaller = (caller: Principal | null): Allowance | null =>
  caller === null || caller.kind === 'session' ? null : allowanceOf(caller.policies)

/** The model with the routes that may be used, or null when none is left. The very same object when nothing has to go. */
export function allowedPart(model: Model, allowance: Allowance): Model | null {
  const isVirtual = model.kind === 'virtual'
  if (!isVirtual && !allowance.model(model.id)) return null
  const routes = model.routes.filter(route => allowance.provider(route.provider.id) && (!isVirtual || allowance.pick(model.id, route.modelId)))
  if (routes.length === 0) return null
  return routes.length === model.routes.length ? model : { ...model, routes }
}

/** Ids of the providers that an allowed model may be served by. */
export function allowedProviders({ models }: CatalogSnapshot, allowance: Allowance): ReadonlySet<string> {
  return new Set([...models.values()].flatMap(model => allowedPart(model, allowance)?.routes.map(route => route.provider.id) ?? []))
}

function listsOf(policy: CallPolicy): Lists | null {
  const known = listsByPolicy.get(policy)
  if (known !== undefined) return known
  const { allowedModels, allowedProviders: providers } = policy
  const lists =
    allowedModels === null && providers === null
      ? null
      : {
          models: allowedModels === null ? null : new Set(allowedModels.map(canonical)),
          providers: providers === null ? null : new Set(providers),
          isPresetsOnly: allowedModels?.every(id => presetOf(id) !== undefined) ?? false,
        }
  listsByPolicy.set(policy, lists)
  return lists
}

/** `best` is another way to write `auto:best`. */
const canonical = (id: string): string => presetOf(id)?.id ?? id
