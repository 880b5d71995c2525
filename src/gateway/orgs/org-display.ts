import { fail } from '../../platform/errors.ts'
import type { DisplayRate, DisplayRates } from '../../platform/display-rate.ts'
import type { Orgs } from './orgs.ts'

export interface OrgDisplayDeps {
  readonly orgs: Pick<Orgs, 'find'>
  /** The setting FX_RATES. */
  readonly rates: DisplayRates
}

/** The currency beside rupees in the reports of an organisation. */
export class OrgDisplay {
  readonly #deps: OrgDisplayDeps

  constructor(deps: OrgDisplayDeps) {
    this.#deps = deps
  }

  /** Returns the rate of the organisation's currency. Null when it has no currency, or when the operator has no rate for it any more. */
  async rateOf(orgId: number): Promise<DisplayRate | null> {
    const currency = (await this.#deps.orgs.find(orgId))?.displayCurrency ?? null
    return currency === null ? null : this.rate(currency)
  }

  /** Returns the rate of a currency, or null. */
  rate(currency: string): DisplayRate | null {
    return this.#deps.rates.get(currency) ?? null
  }

  /** Throws `bad_request` when reports could not show the currency. */
  check(currency: string): void {
    const { rates } = this.#deps
    if (rates.has(currency)) return
    const known =
      rates.size === 0 ? 'The operator of this gateway has set no rates (FX_RATES).' : `There are rates for: ${[...rates.keys()].sort().join(', ')}.`
    throw fail('bad_request', { message: `There is no rate for ${currency}, so reports cannot show it. ${known}` })
  }
}
