/** Every field of Google's API has two names. A request may use either, but not both for one field: the provider may read another one than the gateway. */
import { fail } from '../../../../platform/errors.ts'
import { camelOf } from '../fields.ts'

type Fields = Record<string, unknown>

/** Fields with data and schemas of the client, under both names. Names in them are the client's own, so two that look alike may both be there. */
const ownData: ReadonlySet<string> = new Set([
  ...['args', 'response', 'parameters', 'headers', 'labels'],
  ...['parametersJsonSchema', 'responseSchema', 'responseJsonSchema', '_responseJsonSchema', 'partMetadata'],
  ...['parameters_json_schema', 'response_schema', 'response_json_schema', '_response_json_schema', 'part_metadata'],
])

/**
 * Removes, in the given body, a null under one name of a field that has a value under its other name. Returns whether something was removed. Throws
 * `bad_request` that names both when both have a value. It uses a list instead of recursion, because a body may be nested deeper than the call stack allows.
 */
export function keepOneName(body: Fields): boolean {
  let hasRemoved = false
  const waiting: object[] = [body]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (Array.isArray(next)) {
      for (const each of next as readonly unknown[]) if (typeof each === 'object' && each !== null) waiting.push(each)
      continue
    }
    const fields = next as Fields
    for (const name in fields) {
      if (name.includes('_') && removesNull(fields, name)) hasRemoved = true
      const value = fields[name]
      if (typeof value === 'object' && value !== null && !ownData.has(name)) waiting.push(value)
    }
  }
  return hasRemoved
}

function removesNull(fields: Fields, snake: string): boolean {
  const camel = camelOf(snake)
  if (camel === snake || !Object.hasOwn(fields, camel)) return false
  if (fields[snake] !== null && fields[camel] !== null)
    throw fail('bad_request', { message: `"${camel.slice(0, 64)}" and "${snake.slice(0, 64)}" are two names of one field. Send only one of them.` })
  delete fields[fields[snake] === null ? snake : camel]
  return true
}
