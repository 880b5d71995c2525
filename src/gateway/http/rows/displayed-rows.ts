/**
 * Adds the amounts in the currency of an organisation to the replies of reports. One function serves all reports, so that no rupee figure is left out and
 * all replies have the same shape. Decision 0816 gives the reasons.
 */
import { z } from 'zod'
import { type AnyRow, Reply } from '../../../platform/endpoint.ts'
import type { Principal } from '../../../platform/security/principal.ts'
import { type DisplayRate, displayAmountOf } from '../../../platform/display-rate.ts'
import { uinrFromInr } from '../../../platform/values/money.ts'

/** Finds the rate of an organisation's currency. Null: replies have rupees only. */
export interface DisplayServices {
  readonly orgDisplay: { rateOf(orgId: number): Promise<DisplayRate | null> }
}

const display = z
  .object({
    currency: z.string().describe('ISO 4217.'),
    rate: z.string().describe('Rupees for one unit of the currency.'),
    rate_as_of: z.string().describe('The day of the rate, YYYY-MM-DD.'),
    amounts: z.unknown().describe('Every rupee figure of this reply in the currency, as a decimal text under the same names and in the same places.'),
  })
  .optional()
  .describe('With a display currency of the organisation. Limits and books stay in rupees.')

/** The names of figures in rupees. */
const inrName = /_inr(_per_call)?$/

/** Returns the rows. The replies of the named ones have `display` when the organisation has a display currency with a rate. */
export function displayed<const R extends Readonly<Record<string, AnyRow>>>(rows: R, names: readonly (keyof R & string)[]): R {
  return { ...rows, ...Object.fromEntries(names.map(name => [name, withDisplay(rows[name] as AnyRow)])) }
}

function withDisplay(row: AnyRow): AnyRow {
  const { output } = row
  if (!(output instanceof z.ZodObject)) throw new Error(`the reply of ${row.at} is no object`)
  return {
    ...row,
    output: output.extend({ display }),
    async handle(services: DisplayServices, input: never, call: never) {
      const value: unknown = await row.handle(services, input, call)
      const { principal } = call as { readonly principal: Principal | null }
      if (principal === null || value instanceof Reply) return value
      const rate = await services.orgDisplay.rateOf(principal.orgId)
      return rate === null ? value : { ...(value as object), display: displayOf(value, rate) }
    },
  }
}

/** Returns the amounts of a reply in a currency, with the rate. */
export function displayOf(value: unknown, rate: DisplayRate): NonNullable<z.output<typeof display>> {
  return { currency: rate.currency, rate: rate.rate, rate_as_of: rate.asOf, amounts: amountsOf(value, rate) ?? {} }
}

/** Returns the same structure with the rupee figures only. Items of a list keep their places: an item without a figure is null. */
function amountsOf(value: unknown, rate: DisplayRate): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  if (Array.isArray(value)) {
    const items = value.map(item => amountsOf(item, rate) ?? null)
    return items.some(item => item !== null) ? items : undefined
  }
  const found = Object.entries(value).flatMap(([name, field]): [string, unknown][] => {
    const amount = typeof field === 'number' && inrName.test(name) ? displayAmountOf(uinrFromInr(field), rate) : amountsOf(field, rate)
    return amount === undefined ? [] : [[name, amount]]
  })
  return found.length === 0 ? undefined : Object.fromEntries(found)
}
