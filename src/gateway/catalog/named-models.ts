/** Routes by what a reply may call their models. */
import type { CatalogSnapshot, Route, RoutePrice } from './model.ts'

const indexes = new WeakMap<CatalogSnapshot, ReadonlyMap<string, Route>>()

/**
 * The route at the same provider whose model a reply names, when it costs more than the route that was asked; null when it names the same
 * model, a cheaper one, or none that the catalog has a price for.
 */
export function dearerRoute(catalog: CatalogSnapshot, asked: Route, model: string): Route | null {
  const name = plainName(model)
  if (name === plainName(asked.upstreamModel) || name === plainName(asked.modelId)) return null
  const found = indexOf(catalog).get(`${asked.provider.id} ${name}`)
  return found !== undefined && sumOf(found.price) > sumOf(asked.price) ? found : null
}

/** Without the prefix of a provider and the day of a snapshot: `openai/gpt-5-2026-01-31` is `gpt-5`. */
const plainName = (name: string): string =>
  name
    .toLowerCase()
    .replace(/^.*\//, '')
    .replace(/[-@](?:20\d\d-?\d\d-?\d\d|\d{4})$/, '')

const sumOf = ({ inputUinrPerMtok, outputUinrPerMtok }: RoutePrice): bigint => inputUinrPerMtok + outputUinrPerMtok

/** Of several routes of one name the cheapest: nobody pays more than the least that the model costs there. */
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
