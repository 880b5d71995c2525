/** Addresses with placeholders: `https://{resource}.openai.azure.com/openai/v1`. Decision 0868 gives the reasons. */
import type { AddressTemplate, Place, PlaceName } from '../providers/provider.ts'

/** The placeholders that an address may have. */
export const placeNames = ['resource', 'region', 'project', 'location'] as const satisfies readonly PlaceName[]

/** Why an address or a value cannot be used. The message names what is expected. */
export class AddressError extends Error {
  override readonly name = 'AddressError'
}

const placeholder = /\{([a-z_]+)\}/g
/** One label of a DNS name. */
const labelShape = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
/** One segment of a path that needs no encoding. It begins with a letter or digit, so it is never `.` or `..`. */
const segmentShape = /^[A-Za-z0-9][A-Za-z0-9._~:-]{0,127}$/
/** Names of places that one cloud gives. Another label could be the name of something else at the same cloud: `s3` before `amazonaws.com` makes a bucket. */
const placeShapes: Readonly<Partial<Record<PlaceName, { readonly shape: RegExp; readonly says: string }>>> = {
  region: { shape: /^[a-z]{2,4}(?:-[a-z]+)+-\d{1,2}$/, says: 'the name of a region of AWS, such as ap-south-1' },
  location: { shape: /^[a-z]+(?:-[a-z]+\d{1,2})?$/, says: 'the name of a location of Google, such as asia-south1 or global' },
}
/** The literal labels at the end of a host: `azure.com`. No value can change whose host it is. */
const literalLabelsMin = 2
/** Labels before the two letters of a country below which everybody can have a name: `co.uk`, `com.au`. */
const sharedLabels = /^(?:ac|co|com|edu|gen|gob|go|gov|ltd|me|mil|ne|net|nom|or|org|plc|sch)\.[a-z]{2}$/

/** Returns whether a text is an address, with or without placeholders, that can be filled. */
export function isAddress(text: string): boolean {
  try {
    checkTemplate(text)
    return true
  } catch {
    return false
  }
}

/** Returns the names of the placeholders of an address, once each. */
export const namesIn = (text: string): readonly PlaceName[] => [...new Set([...text.matchAll(placeholder)].map(([, name]) => name as PlaceName))]

function checkTemplate(text: string): void {
  const names: readonly string[] = placeNames
  const unknown = namesIn(text).find(name => !names.includes(name))
  if (unknown !== undefined) throw new AddressError(`{${unknown}} is no placeholder; expected ${placeNames.map(name => `{${name}}`).join(', ')}`)
  const filled = text.replace(placeholder, 'x')
  if (/[{}]/.test(filled) || !URL.canParse(filled) || !/^https?:$/.test(new URL(filled).protocol)) throw new AddressError('expected an http or https URL')
  const host = /^https?:\/\/([^/?#]*)/.exec(text)?.[1] ?? ''
  if (!host.includes('{')) return
  if (/[@\\%]/.test(host)) throw new AddressError('expected a host name with placeholders, without a user or an escape')
  const labels = host.replace(/:\d+$/, '').split('.')
  const isShared = sharedLabels.test(labels.slice(-literalLabelsMin).join('.').toLowerCase())
  const literal = labels.slice(isShared ? -literalLabelsMin - 1 : -literalLabelsMin)
  if (labels.length <= literal.length || literal.some(label => label.includes('{')))
    throw new AddressError(`expected no placeholder in the last ${isShared ? 'three' : 'two'} labels of the host`)
}

/** Returns the template with its cases. Throws AddressError for an address that cannot be filled. */
export function addressTemplate(text: string, cases: AddressTemplate['cases'] = []): AddressTemplate {
  for (const each of [text, ...cases.map(one => one.text)]) checkTemplate(each)
  return {
    text,
    cases,
    names: [...new Set([text, ...cases.map(one => one.text)].flatMap(namesIn)), ...cases.flatMap(one => Object.keys(one.when) as PlaceName[])].filter(isFirst),
  }
}

const isFirst = <T>(item: T, index: number, items: readonly T[]): boolean => items.indexOf(item) === index

/**
 * Returns the address for the values. Throws AddressError for a value that is missing, or that is more than one label of the host or one segment of the
 * path where it is used.
 */
export function filledAddress(template: AddressTemplate, place: Place): string {
  const chosen = template.cases.find(({ when }) => Object.entries(when).every(([name, value]) => place[name as PlaceName] === value))?.text ?? template.text
  const hostEnd = chosen.indexOf('/', chosen.indexOf('://') + 3)
  const filled = chosen.replace(placeholder, (_all, name: PlaceName, at: number) => {
    const value = place[name]
    if (value === undefined) throw new AddressError(`${name} is missing`)
    const isInHost = hostEnd === -1 || at < hostEnd
    if (!(isInHost ? labelShape : segmentShape).test(value))
      throw new AddressError(
        `${name} must be ${isInHost ? 'one label of a host name: small letters, digits and hyphens' : 'one segment of a path: letters, digits, . _ ~ : and -'}`,
      )
    const known = placeShapes[name]
    if (known !== undefined && !known.shape.test(value)) throw new AddressError(`${name} must be ${known.says}`)
    return value
  })
  // A last look at the whole: nothing outside of the placeholders has changed.
  if (new URL(filled).href.replace(/\/$/, '') !== filled.replace(/\/$/, '')) throw new AddressError('the values do not give a proper address')
  return filled
}

/** Returns the values that the template needs and the place does not have. */
export const missingNames = ({ names }: AddressTemplate, place: Place): readonly PlaceName[] => names.filter(name => place[name] === undefined)
