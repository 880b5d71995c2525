import { type Config, ConfigError } from '../platform/config.ts'
import { type DisplayRates, displayRatesOf } from '../platform/display-rate.ts'

/** Returns the operator's rates of currencies. Throws ConfigError for an entry that is no rate. */
export function displayRates({ FX_RATES }: Pick<Config, 'FX_RATES'>): DisplayRates {
  try {
    return displayRatesOf(FX_RATES)
  } catch (error) {
    throw error instanceof RangeError ? new ConfigError(`FX_RATES ${error.message}`, { cause: error }) : error
  }
}
