/** Finds the model in another router's list that is the same as a model of the catalog. It compares names, because the lists have no common ids. */
import type { Model } from '../model.ts'
import type { ListedPrice } from './price-sources.ts'

/** The list, indexed by exact id and by name. A name is an id without vendor and separators. */
export interface PriceIndex {
  readonly byId: ReadonlyMap<string, ListedPrice>
  readonly byName: ReadonlyMap<string, readonly ListedPrice[]>
}

export function indexPrices(prices: readonly ListedPrice[]): PriceIndex {
  const byName = new Map<string, ListedPrice[]>()
  for (const price of prices) {
    // An id with a suffix such as `:thinking` or `:extended` is a different offer of the model.
    if (price.id.includes(':')) continue
    const name = nameOf(price.id)
    byName.set(name, [...(byName.get(name) ?? []), price])
  }
  return { byId: new Map(prices.map(price => [price.id.toLowerCase(), price])), byName }
}

/**
 * Returns the entry for a model of the catalog, or null. The catalog's `compare_with` comes first. Otherwise this tries the id, the id without its
 * date, and the providers' names for the model. When several vendors have a model of that name, the vendor must match too.
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

/** Returns a single entry unchanged. Of several entries, returns those of the vendor. */
function ofVendor(found: readonly ListedPrice[], ownedBy: string): readonly ListedPrice[] {
  return found.length < 2 ? found : found.filter(({ id }) => isVendor(vendorOf(id), plain(ownedBy)))
}

/** Returns the name part of an id in plain form: `anthropic/Claude-Opus-4.5` and `claude-opus-4-5` give the same name. */
const nameOf = (id: string): string => plain(id.slice(id.lastIndexOf('/') + 1))
const vendorOf = (id: string): string => plain(id.includes('/') ? id.slice(0, id.indexOf('/')) : '')
const plain = (text: string): string => text.toLowerCase().replace(/[^a-z0-9]/g, '')
/** Compares names of vendors by prefix: `meta` and `meta-llama`, `mistral` and `mistralai` match. */
const isVendor = (theirs: string, ours: string): boolean => theirs !== '' && ours !== '' && (theirs.startsWith(ours) || ours.startsWith(theirs))
