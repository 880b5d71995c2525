import { type Config, ConfigError } from '../../platform/config.ts'
import type { Seller } from './invoice-parties.ts'

const prefixShape = /^[A-Z0-9]{1,3}$/

/** Who sells, from the configuration. Throws ConfigError for what could not stand on an invoice. */
export function sellerOf(config: Config): Seller {
  if (!prefixShape.test(config.INVOICE_PREFIX))
    throw new ConfigError('INVOICE_PREFIX must be one to three capital letters or digits: numbers of invoices have at most 16 characters.')
  return {
    name: config.INVOICE_SELLER_NAME,
    addressLines: config.INVOICE_SELLER_ADDRESS.split(',')
      .map(line => line.trim())
      .filter(line => line !== ''),
    gstin: config.INVOICE_SELLER_GSTIN,
    prefix: config.INVOICE_PREFIX,
    sac: '998315',
    namesBuyerGstin: config.GST_BUSINESS_INVOICES,
  }
}
