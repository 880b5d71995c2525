/** The state list of GST. Its codes are the first two digits of a GSTIN and identify the place of supply. */

interface GstState {
  readonly name: string
  /** True for a union territory without a legislature. The local part of its tax is UTGST, not SGST. */
  readonly isTerritory?: true
}

// biome-ignore format: a table reads by rows
const states: Readonly<Record<string, GstState>> = {
  '01': { name: 'Jammu and Kashmir' }, '02': { name: 'Himachal Pradesh' }, '03': { name: 'Punjab' }, '04': { name: 'Chandigarh', isTerritory: true },
  '05': { name: 'Uttarakhand' }, '06': { name: 'Haryana' }, '07': { name: 'Delhi' }, '08': { name: 'Rajasthan' }, '09': { name: 'Uttar Pradesh' },
  '10': { name: 'Bihar' }, '11': { name: 'Sikkim' }, '12': { name: 'Arunachal Pradesh' }, '13': { name: 'Nagaland' }, '14': { name: 'Manipur' },
  '15': { name: 'Mizoram' }, '16': { name: 'Tripura' }, '17': { name: 'Meghalaya' }, '18': { name: 'Assam' }, '19': { name: 'West Bengal' },
  '20': { name: 'Jharkhand' }, '21': { name: 'Odisha' }, '22': { name: 'Chhattisgarh' }, '23': { name: 'Madhya Pradesh' }, '24': { name: 'Gujarat' },
  '26': { name: 'Dadra and Nagar Haveli and Daman and Diu', isTerritory: true }, '27': { name: 'Maharashtra' }, '29': { name: 'Karnataka' }, '30': { name: 'Goa' },
  '31': { name: 'Lakshadweep', isTerritory: true }, '32': { name: 'Kerala' }, '33': { name: 'Tamil Nadu' }, '34': { name: 'Puducherry' },
  '35': { name: 'Andaman and Nicobar Islands', isTerritory: true }, '36': { name: 'Telangana' }, '37': { name: 'Andhra Pradesh' },
  '38': { name: 'Ladakh', isTerritory: true }, '97': { name: 'Other Territory', isTerritory: true },
}

/** Returns the name of a state by its code, or null for an unknown code. Codes 25 and 28 are not listed, because their states were merged and divided. */
export function stateName(code: string): string | null {
  return states[code]?.name ?? null
}

/**
 * Maps two former state codes to the current ones. Code 25 ended with the merger of 2020, and code 28 with the division of 2014. Old GSTINs may still
 * begin with them.
 */
const laterCodes: Readonly<Record<string, string>> = { '25': '26', '28': '37' }

/** Returns the current code of a state, so that an old and a new code of the same state compare as equal. */
export function currentStateCode(code: string): string {
  return laterCodes[code] ?? code
}

/** Returns true for a union territory whose local tax, next to CGST, is called UTGST. */
export function isTerritory(code: string): boolean {
  return states[code]?.isTerritory === true
}

/** All codes and names, sorted by code. */
export const gstStates: readonly { readonly code: string; readonly name: string }[] = Object.entries(states)
  .map(([code, { name }]) => ({ code, name }))
  .sort((a, b) => a.code.localeCompare(b.code))
