/** Finds routes by the model names that replies contain. */
import type { CatalogSnapshot, Route, RoutePrice } from './model.ts'

const indexes = new WeakMap<CatalogSnapshot, ReadonlyMap<string, Route>>()

/**
 * Returns the route of the model that a reply names, if it costs more than the requested route of the same provider. Returns null when the reply
 * names the same model, a cheaper model, or a model without a price in the catalog.
 */
export function dearerRoute(catalog: CatalogSnapshot, asked: Route, model: string): Route | null {
  const name = plainName(model)
  if (name === plainName(asked.upstreamModel) || name === plainName(asked.modelId)) return null
  const found = indexOf(catalog).get(`${asked.provider.id} ${name}`)
  return found !== undefined && sumOf(found.price) > sumOf(asked.price) ? found : null
}

/** Removes the prefix of a provider and the day of a snapshot: `openai/gpt-5-2026-01-31` becomes `gpt-5`. */
const plainName = (name: string): string =>
  name
    .toLowerCase()
    .replace(/^.*\//, '')
    .replace(/[-@](?:20\d\d-?\d\d-?\d\d|\d{4})$/, '')

const sumOf = ({ inputUinrPerMtok, outputUinrPerMtok }: RoutePrice): bigint => inputUinrPerMtok + outputUinrPerMtok

/** Indexes routes by provider and name. When several routes have one name, the cheapest is used, so that nobody pays more than the lowest price. */
function indexOf(catalog: CatalogSnapshot): ReadonlyMap<string, Route> {
  const known = indexes.get(catalog)
  if (known !== undefined) return known
  const made = new Map<string, Route>()
  for (const model of catalog.models.values())
    for (const route of model.kind === 'virtual' ? [] : model.routes)
      for (const name of [route.upstreamModel, route.modelId]) {
        const key = `${route.provider.id} ${plainName(name)}`
        const before = made.get(key)
        if (before === undefined || sumOf(route.price) < sumOf(before.price)) made.set(key, route)
      }
  indexes.set(catalog, made)
  return made
}
