import { money, shortMoney } from '../../ui/format/numbers.ts'
import type { Model } from '../steps/use-models.ts'
import { text } from './text.ts'

type PriceName = keyof typeof text.priceNames

/** Returns all prices of a model with their names. Empty for a model that costs nothing or only chooses. */
export function pricesOf({ pricing, inrPerImage }: Model): readonly (readonly [string, string])[] {
  const prices = (Object.keys(text.priceNames) as PriceName[]).map(name => [text.priceNames[name] as string, pricing[name] ?? 0] as const)
  return [...prices, [text.aPicture, inrPerImage ?? 0] as const].filter(([, inr]) => inr > 0).map(([label, inr]) => [label, money(inr)])
}

/** Writes what a person compares first: the price of tokens in and out, or the unit that the model is charged by. */
export function priceText(model: Model): string {
  const { pricing, kind, inrPerImage } = model
  if (kind === 'virtual') return '–'
  if (pricing.outputINRPerMtok > 0) return `${shortMoney(pricing.inputINRPerMtok)} / ${shortMoney(pricing.outputINRPerMtok)}`
  if (pricing.inputINRPerMtok > 0) return shortMoney(pricing.inputINRPerMtok)
  if (inrPerImage !== undefined && inrPerImage > 0) return `${shortMoney(inrPerImage)} a picture`
  const [first] = pricesOf(model)
  return first === undefined ? text.free : `${first[1]} · ${first[0].toLowerCase()}`
}
