import { type Config, ConfigError } from '../../../platform/config.ts'
import type { Seller } from './invoice-parties.ts'
import { gstinWords, readGstin } from './tax/gstin.ts'

const prefixShape = /^[A-Z0-9]{1,3}$/
const sacShape = /^99\d{4}$/

type SellerConfig = Pick<
  Config,
  'INVOICE_SELLER_NAME' | 'INVOICE_SELLER_ADDRESS' | 'INVOICE_SELLER_GSTIN' | 'INVOICE_PREFIX' | 'INVOICE_SAC' | 'GST_BUSINESS_INVOICES'
>

/** Returns the seller from the configuration. Throws ConfigError for values that are not allowed on an invoice. */
export function sellerOf(config: SellerConfig): Seller {
  const name = config.INVOICE_SELLER_NAME.trim()
  if (name === '') throw new ConfigError('INVOICE_SELLER_NAME must not be empty: it is on every invoice.')
  if (!prefixShape.test(config.INVOICE_PREFIX))
    throw new ConfigError('INVOICE_PREFIX must be one to three capital letters or digits: an invoice number has at most 16 characters, as in BR/26-27/000001.')
  if (!sacShape.test(config.INVOICE_SAC)) throw new ConfigError('INVOICE_SAC must be a service accounting code: six digits that begin with 99.')
  return {
    name,
    addressLines: config.INVOICE_SELLER_ADDRESS.split(',')
      .map(line => line.trim())
      .filter(line => line !== ''),
    gstin: config.INVOICE_SELLER_GSTIN === null ? null : gstinOf(config.INVOICE_SELLER_GSTIN),
    prefix: config.INVOICE_PREFIX,
    sac: config.INVOICE_SAC,
    namesBuyerGstin: config.GST_BUSINESS_INVOICES,
  }
}

function gstinOf(text: string): string {
  const finding = readGstin(text)
  if (!finding.valid) throw new ConfigError(`INVOICE_SELLER_GSTIN is not a GSTIN. ${gstinWords[finding.reason]}`)
  return finding.gstin
}
