/** Which model of another router's list is the same as one of ours: by name, because there is no common id. */
import type { Model } from '../model.ts'
import type { ListedPrice } from './price-sources.ts'

/** The list, by exact id and by what is left of the ids when vendors and separators are gone. */
export interface PriceIndex {
  readonly byId: ReadonlyMap<string, ListedPrice>
  readonly byName: ReadonlyMap<string, readonly ListedPrice[]>
}

export function indexPrices(prices: readonly ListedPrice[]): PriceIndex {
  const byName = new Map<string, ListedPrice[]>()
  for (const price of prices) {
    // Suffixes such as `:thinking` and `:extended` are other offers of a model.
    if (price.id.includes(':')) continue
    const name = nameOf(price.id)
    byName.set(name, [...(byName.get(name) ?? []), price])
  }
  return { byId: new Map(prices.map(price => [price.id.toLowerCase(), price])), byName }
}

/**
 * Their entry for a model of ours, or null. What the catalog names (`compare_with`) goes before everything; else the id, the id without its date, and
 * the names that providers have for the model. Where several vendors have a model of that name it must be of ours.
 */
export function matchOf(model: Model, { byId, byName }: PriceIndex): ListedPrice | null {
  if (model.comparedWith === null) return null
  if (model.comparedWith !== undefined) return byId.get(model.comparedWith.toLowerCase()) ?? null
  const names = [model.id, model.id.replace(/-20\d{6}$/, ''), ...model.routes.map(route => route.upstreamModel)]
  for (const name of names) {
    const found = byName.get(nameOf(name)) ?? []
    const [only, ...others] = ofVendor(found, model.ownedBy)
    if (only !== undefined && others.length === 0) return only
  }
  return null
}

/** Of several entries those of the vendor. */
function ofVendor(found: readonly ListedPrice[], ownedBy: string): readonly ListedPrice[] {
  return found.length < 2 ? found : found.filter(({ id }) => isVendor(vendorOf(id), plain(ownedBy)))
}

/** `anthropic/Claude-Opus-4.5` and `claude-opus-4-5` have one name. */
const nameOf = (id: string): string => plain(id.slice(id.lastIndexOf('/') + 1))
const vendorOf = (id: string): string => plain(id.includes('/') ? id.slice(0, id.indexOf('/')) : '')
const plain = (text: string): string => text.toLowerCase().replace(/[^a-z0-9]/g, '')
/** `meta` and `meta-llama`, `mistral` and `mistralai`. */
const isVendor = (theirs: string, ours: string): boolean => theirs !== '' && ours !== '' && (theirs.startsWith(ours) || ours.startsWith(theirs))
