/**
 * The tax number of a business: two digits for the state, the ten characters of its PAN, and three more. The last character is a check character. The
 * functions are pure.
 */
import { stateName } from './gst-states.ts'

export type GstinReason = 'format' | 'unknown_state' | 'check_digit'

export type GstinFinding =
  | { readonly valid: true; readonly gstin: string; readonly pan: string; readonly state: string; readonly stateCode: string }
  | { readonly valid: false; readonly reason: GstinReason }

/**
 * The parts are: state, PAN (five letters, four digits, a letter), number of this registration of the PAN in the state, a letter (usually Z), check
 * character.
 */
const shape = /^[0-9]{2}[A-Z]{5}[0-9]{4}[A-Z][1-9A-Z][A-Z][0-9A-Z]$/
const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ'

/** States that were merged or divided. Old registrations may still have their codes. */
const formerStates: Readonly<Record<string, string>> = { '25': 'Daman and Diu', '28': 'Andhra Pradesh' }

/** Checks a GSTIN and returns its parts or the reason why it is invalid. Lower case and surrounding spaces are accepted. */
export function readGstin(text: string): GstinFinding {
  const gstin = text.trim().toUpperCase()
  if (!shape.test(gstin)) return { valid: false, reason: 'format' }
  const stateCode = gstin.slice(0, 2)
  const state = stateName(stateCode) ?? formerStates[stateCode]
  if (state === undefined) return { valid: false, reason: 'unknown_state' }
  if (gstin.at(-1) !== gstinCheckDigit(gstin)) return { valid: false, reason: 'check_digit' }
  return { valid: true, gstin, pan: gstin.slice(2, 12), state, stateCode }
}

/**
 * Returns the check character for the first fourteen characters of a GSTIN. Each character stands for a number from 0 to 35. Every second number is
 * doubled. The two base-36 digits of each product are added to the sum. The check character is the difference between the sum and the next multiple
 * of 36. It detects every single wrong character.
 */
export function gstinCheckDigit(gstin: string): string {
  let sum = 0
  for (const [index, character] of [...gstin.slice(0, 14)].entries()) {
    const product = digits.indexOf(character) * (index % 2 === 0 ? 1 : 2)
    sum += Math.floor(product / 36) + (product % 36)
  }
  return digits[(36 - (sum % 36)) % 36] ?? ''
}

/** Messages for the person who typed the number. */
export const gstinWords: Readonly<Record<GstinReason, string>> = {
  format: 'A GSTIN has 15 characters: two digits for the state, the PAN, and three more.',
  unknown_state: 'The first two digits are no state of the GST list.',
  check_digit: 'The last character does not fit the others: one of them is mistyped.',
}
