/** Applies the rules of a key and an agent to the catalog. Routing and the public lists use the same functions. */
import type { CallPolicy, Principal } from '../../platform/security/principal.ts'
import type { CatalogSnapshot, Model } from './model.ts'
import { presetOf } from './virtual-models.ts'

/** The combined rules. Something is allowed only if every rule allows it. */
export interface Allowance {
  /** Returns whether the model is allowed. Takes catalog ids and `provider/model` ids. */
  model(id: string): boolean
  /** Returns whether the provider is allowed. Takes provider ids and `byoe:<slug>`. */
  provider(id: string): boolean
  /** Returns true when the virtual id may pick that model. */
  pick(virtualId: string, modelId: string): boolean
}

interface Lists {
  readonly models: ReadonlySet<string> | null
  readonly providers: ReadonlySet<string> | null
  /** True when the list of models contains only virtual ids. These may then pick any model, because otherwise the list would allow nothing. */
  readonly isPresetsOnly: boolean
}

/** A policy lives as long as the cached key or agent. The sets that are made from its lists are kept here. */
const listsByPolicy = new WeakMap<CallPolicy, Lists | null>()

/** Combines the lists of all policies. Returns null when no policy names models or providers. */
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

/** Returns the rules of the caller. Requests without a credential and signed-in persons have none. */
export const allowanceOfCaller = (caller: Principal | null): Allowance | null =>
  caller === null || caller.kind === 'session' ? null : allowanceOf(caller.policies)

/** Returns the model with its allowed routes, or null when none is allowed. Returns the same object when all routes are allowed. */
export function allowedPart(model: Model, allowance: Allowance): Model | null {
  const isVirtual = model.kind === 'virtual'
  if (!isVirtual && !allowance.model(model.id)) return null
  const routes = model.routes.filter(route => allowance.provider(route.provider.id) && (!isVirtual || allowance.pick(model.id, route.modelId)))
  if (routes.length === 0) return null
  return routes.length === model.routes.length ? model : { ...model, routes }
}

/** Returns the ids of the providers of allowed models. */
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

/** Maps `best` to its other spelling `auto:best`. */
const canonical = (id: string): string => presetOf(id)?.id ?? id
