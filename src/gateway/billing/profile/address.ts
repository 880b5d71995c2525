/** The rules for the fields of a billing address. The functions are pure. */

import { stateName } from '../invoices/tax/gst-states.ts'
import { stateOf } from '../invoices/tax/state-name.ts'
import { isPincode, placeOfPincode, statesOfPincode } from './pincodes.ts'

export interface BillingAddress {
  readonly name: string
  readonly line1: string
  readonly line2: string | null
  readonly city: string
  /** The name of the state in the GST state list. */
  readonly state: string
  readonly stateCode: string
  /** Six digits. */
  readonly pincode: string
  readonly country: 'IN'
}

export type AddressField = 'name' | 'line1' | 'line2' | 'city' | 'state' | 'pincode' | 'country'

/** The unchecked values of a request. */
export type SentAddress = Readonly<Partial<Record<AddressField, unknown>>>

export type AddressFinding =
  | { readonly address: BillingAddress }
  /** What is wrong with each invalid field, in the order of the form. The texts never repeat what the person typed. */
  | { readonly wrong: ReadonlyMap<AddressField, string> }

const lengthMax = { name: 100, line1: 150, line2: 150, city: 80 } as const

/**
 * Control characters, line ends, and characters that hide or reverse text. An invoice must not have them. The two joiners (U+200C and U+200D) are
 * allowed, because several Indian scripts need them.
 */
const notPrinted = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\p{Co}\p{Cn}]|(?![\u200c\u200d])\p{Cf}/u

/**
 * Checks every field and normalises the texts. It removes surrounding and doubled spaces, takes the name of the state from the list, and writes the
 * PIN code without spaces.
 */
export function readAddress(sent: SentAddress): AddressFinding {
  const wrong = new Map<AddressField, string>()
  const text = (field: keyof typeof lengthMax): string => {
    const finding = readLine(sent[field], lengthMax[field])
    if ('wrong' in finding) wrong.set(field, finding.wrong)
    return 'text' in finding ? finding.text : ''
  }
  const name = text('name')
  const line1 = text('line1')
  const line2 = sent.line2 === undefined || sent.line2 === null || isBlank(sent.line2) ? null : text('line2')
  const city = text('city')
  const state = typeof sent.state === 'string' && sent.state.length <= 100 ? stateOf(sent.state) : null
  if (state === null) wrong.set('state', 'must be a state or union territory of India, by name or two-digit GST code')
  const pincode = typeof sent.pincode === 'string' ? sent.pincode.replace(/^\s*(\d{3})\s?(\d{3})\s*$/, '$1$2') : ''
  const pincodeWrong = whyNotPincode(pincode, state?.code ?? null)
  if (pincodeWrong !== null) wrong.set('pincode', pincodeWrong)
  if (!isIndia(sent.country)) wrong.set('country', 'must be IN: only addresses in India are billed')
  if (wrong.size > 0 || state === null) return { wrong }
  return { address: { name, line1, line2, city, state: state.name, stateCode: state.code, pincode, country: 'IN' } }
}

const isBlank = (value: unknown): boolean => typeof value === 'string' && /^ *$/.test(value)

function isIndia(country: unknown): boolean {
  return country === undefined || (typeof country === 'string' && country.trim().toUpperCase() === 'IN')
}

/**
 * Returns the value as one normalised, printable line within the length limit. Otherwise returns what is wrong with it, in words that follow the name
 * of the field.
 */
export function readLine(value: unknown, lengthMaxOf: number): { readonly text: string } | { readonly wrong: string } {
  if (value === undefined || value === null) return { wrong: 'is missing' }
  if (typeof value !== 'string') return { wrong: 'must be text' }
  if (value.length > 4 * lengthMaxOf) return { wrong: `takes at most ${lengthMaxOf} characters` }
  if (notPrinted.test(value)) return { wrong: 'must be one line without control characters' }
  const text = value.normalize('NFC').replace(/\s+/g, ' ').trim()
  if (text === '') return { wrong: 'is missing' }
  if ([...text].length > lengthMaxOf) return { wrong: `takes at most ${lengthMaxOf} characters` }
  return /[\p{L}\p{N}]/u.test(text) ? { text } : { wrong: 'must have a letter or digit' }
}

/** Returns null when the PIN code can be in that state. Otherwise returns what is wrong. */
function whyNotPincode(pincode: string, stateCode: string | null): string | null {
  if (!isPincode(pincode)) return 'must be the six digits of an Indian PIN code'
  const states = statesOfPincode(pincode)
  if (stateCode === null || states.length === 0 || states.includes(stateCode)) return null
  const home = placeOfPincode(pincode)?.stateCode ?? states[0] ?? ''
  return `is not in that state: PIN codes with this beginning are in ${stateName(home) ?? 'another one'}`
}
