/** Finds a state of the GST list by the names that people write. The functions are pure. */
import { gstStates, stateName } from './gst-states.ts'

/** Former and short names with the codes of their states. The names are reduced to letters. Two-letter names are vehicle codes or codes of ISO 3166-2. */
// biome-ignore format: a table reads by rows
const otherNames: Readonly<Record<string, string>> = {
  jk: '01', jandk: '01', hp: '02', pb: '03', ch: '04', uk: '05', ut: '05', ua: '05', uttaranchal: '05', hr: '06', dl: '07', newdelhi: '07', nctofdelhi: '07', delhinct: '07',
  nationalcapitalterritoryofdelhi: '07', rj: '08', up: '09', br: '10', sk: '11', ar: '12', nl: '13', mn: '14', mz: '15', tr: '16', ml: '17', as: '18',
  wb: '19', jh: '20', od: '21', or: '21', orissa: '21', cg: '22', ct: '22', chattisgarh: '22', chhatisgarh: '22', mp: '23', gj: '24',
  dd: '26', dn: '26', dh: '26', dnhdd: '26', damananddiu: '26', dadraandnagarhaveli: '26', thedadraandnagarhavelianddamananddiu: '26',
  mh: '27', ka: '29', ga: '30', ld: '31', kl: '32', tn: '33', py: '34', pondicherry: '34', an: '35', andamanandnicobar: '35',
  ts: '36', tg: '36', telengana: '36', ap: '37', la: '38',
}

const lettersOf = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll('&', 'and')
    .replace(/[^a-z]/g, '')

const codeOfName: ReadonlyMap<string, string> = new Map([...gstStates.map(({ code, name }) => [lettersOf(name), code] as const), ...Object.entries(otherNames)])

/** Code 97 is the continental shelf, where there are no addresses. */
const notOnLand = '97'

/** Returns the state of the GST list by its name in any common spelling, its two letters or its two-digit code. Returns null when there is no such state. */
export function stateOf(text: string): { readonly code: string; readonly name: string } | null {
  const trimmed = text.trim()
  const code = /^\d{1,2}$/.test(trimmed) ? trimmed.padStart(2, '0') : codeOfName.get(lettersOf(trimmed))
  const name = code === undefined || code === notOnLand ? null : stateName(code)
  return code === undefined || name === null ? null : { code, name }
}
