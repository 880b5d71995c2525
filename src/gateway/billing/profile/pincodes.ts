/** Finds the place of a PIN code. The table is read once, at the first request. Decision 0309 says why. */
import { readFileSync } from 'node:fs'

export interface PincodePlace {
  /** The city or postal district. */
  readonly city: string
  /** Code of the GST state list. When the PIN code covers several states, it is the state with most of its post offices. */
  readonly stateCode: string
  /** All states that the code covers, `stateCode` first. */
  readonly stateCodes: readonly string[]
}

interface Table {
  readonly places: ReadonlyMap<string, PincodePlace>
  /** Maps the first three digits and the first two digits of PIN codes to the states of all codes that begin with them. */
  readonly statesOfPrefix: ReadonlyMap<string, ReadonlySet<string>>
}

const file = new URL('../../../../catalog/pincodes.txt', import.meta.url)

let known: Table | null = null

const table = (): Table => {
  known ??= tableOf(readFileSync(file, 'utf8'))
  return known
}

/** Returns true for six digits of which the first is not 0. */
export function isPincode(text: string): boolean {
  return /^[1-9][0-9]{5}$/.test(text)
}

/** Returns where a PIN code is, or null for an unknown code. */
export function placeOfPincode(pincode: string): PincodePlace | null {
  return table().places.get(pincode) ?? null
}

/**
 * Returns the states that a PIN code can be in. New codes come every year. For an unknown code, the states come from its first three digits,
 * otherwise from its first two. Returns an empty list when no known code begins with these digits, as for the army's post offices.
 */
export function statesOfPincode(pincode: string): readonly string[] {
  const { places, statesOfPrefix } = table()
  const place = places.get(pincode)
  if (place !== undefined) return place.stateCodes
  return [...(statesOfPrefix.get(pincode.slice(0, 3)) ?? statesOfPrefix.get(pincode.slice(0, 2)) ?? [])]
}

/** Reads lines such as `29 Bengaluru: 560001-560110 562157`. A line that begins with `26+24` belongs to both states. */
function tableOf(text: string): Table {
  const places = new Map<string, PincodePlace>()
  const statesOfPrefix = new Map<string, Set<string>>()
  for (const line of text.split('\n')) {
    const [, codes, city, ranges] = /^([0-9+]+) ([^:]+): (.+)$/.exec(line) ?? []
    if (codes === undefined || city === undefined || ranges === undefined) continue
    const stateCodes = codes.split('+')
    const [stateCode = ''] = stateCodes
    const place = { city, stateCode, stateCodes }
    for (const pincode of codesOf(ranges)) {
      places.set(pincode, place)
      for (const length of [3, 2]) addStates(statesOfPrefix, pincode.slice(0, length), stateCodes)
    }
  }
  return { places, statesOfPrefix }
}

function addStates(statesOfPrefix: Map<string, Set<string>>, prefix: string, stateCodes: readonly string[]): void {
  const states = statesOfPrefix.get(prefix) ?? new Set()
  for (const code of stateCodes) states.add(code)
  statesOfPrefix.set(prefix, states)
}

function codesOf(ranges: string): string[] {
  return ranges.split(' ').flatMap(range => {
    const [first, last = first] = range.split('-').map(Number)
    if (first === undefined || last === undefined) return []
    return Array.from({ length: last - first + 1 }, (_, i) => String(first + i))
  })
}
