/** Reads the router fields (such as `exclude`) of a request that is a form. JSON bodies have the same fields. In a form their values are text. */
import { fail, GatewayError } from '../../platform/errors.ts'
import { parseRouterFields, type RouterFields, routerOnlyNames } from './chat/router-fields.ts'
import { parseJson } from './json/json-body.ts'
import { managementBounds } from './json/json-scan.ts'

/** A text field of a form. */
export interface FormField {
  readonly name: string
  readonly value: string
}

export interface ParsedFormFields {
  readonly fields: RouterFields
  /** The other fields in their order, for the provider. */
  readonly others: readonly FormField[]
}

const lists = ['exclude', 'fallbacks'] as const
const numbers = ['image_max_edge'] as const

/** Maximum length of all router fields of a form together, in characters. They are parsed in one turn of the event loop. */
const routerFieldsLengthMax = 64 * 1024

/**
 * Reads and removes the router fields of a form. `exclude` and `fallbacks` are a JSON array, or one field for each item, with or without `[]` after the name.
 * `optimize_weights` is a JSON object. An empty value counts as absent. Throws the errors of `parseRouterFields`, and `bad_request` for a field that is given
 * twice and for router fields that are too long together.
 */
export function parseFormFields(fields: readonly FormField[]): ParsedFormFields {
  const given: Record<string, unknown> = {}
  const others: FormField[] = []
  let length = 0
  for (const field of fields) {
    const name = routerOnlyNames.find(known => known === field.name || `${known}[]` === field.name)
    if (name === undefined) others.push(field)
    else if (field.value !== '') {
      length += field.value.length
      if (length > routerFieldsLengthMax) throw fail('bad_request', { message: tooLong })
      give(given, name, field.value)
    }
  }
  const model = others.find(({ name }) => name === 'model')?.value
  return { fields: parseRouterFields(model === undefined ? given : { ...given, model }).fields, others }
}

const tooLong = `The router fields of a form (${routerOnlyNames.join(', ')}) have more than ${routerFieldsLengthMax} characters. Send fewer or shorter ones.`

function give(given: Record<string, unknown>, name: (typeof routerOnlyNames)[number], value: string): void {
  if (lists.some(list => list === name)) {
    const before = given[name]
    const items = value.startsWith('[') ? json(name, value) : [name === 'fallbacks' && value.startsWith('{') ? json(name, value) : value]
    given[name] = Array.isArray(before) && Array.isArray(items) ? [...before, ...items] : items
    return
  }
  if (Object.hasOwn(given, name)) throw fail('bad_request', { message: `"${name}" is given twice.` })
  if (name === 'optimize_weights') given[name] = json(name, value)
  else given[name] = numbers.some(number => number === name) ? Number(value) : value
}

function json(name: string, value: string): unknown {
  try {
    return parseJson(Buffer.from(value), managementBounds)
  } catch (cause) {
    throw cause instanceof GatewayError ? cause : fail('bad_request', { message: `"${name}" is not valid JSON.`, cause })
  }
}

/** Returns the only value of a field, or null if it is absent or empty. Throws `bad_request` if the field is given twice. */
export function oneField(fields: readonly FormField[], name: string): string | null {
  const found = fields.filter(field => field.name === name)
  if (found.length > 1) throw fail('bad_request', { message: `"${name}" is given twice.` })
  return found[0]?.value || null
}
