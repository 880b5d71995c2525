import { z } from 'zod'
import type { InputSpec } from '../../../platform/endpoint.ts'
import { fail } from '../../../platform/errors.ts'

/** Input before the schemas of the row have checked it. Values of path, query and headers are texts. */
export interface RawInput {
  readonly path?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | string[] | undefined>>
  readonly headers?: Readonly<Record<string, string | string[] | undefined>>
  /** Bytes for bodyKind 'raw' and 'inference', a Form for 'multipart', a BodyStream for 'stream', otherwise a parsed JSON value or form. */
  readonly body?: unknown
}

/** Returns the input as the row's schemas parse it. Throws `bad_request` that names the first invalid field. */
export function parseInput(spec: InputSpec, raw: RawInput): { path: unknown; query: unknown; headers: unknown; body: unknown } {
  return {
    path: spec.path ? parsePart(spec.path, raw.path ?? {}, 'path') : undefined,
    query: spec.query ? parsePart(spec.query, raw.query ?? {}, 'query') : undefined,
    headers: spec.headers ? parsePart(spec.headers, raw.headers ?? {}, 'header') : undefined,
    body: isValidated(spec) ? (spec.body ? parsePart(spec.body, raw.body ?? {}, 'body') : undefined) : raw.body,
  }
}

const isValidated = ({ bodyKind = 'json' }: InputSpec): boolean => bodyKind === 'json' || bodyKind === 'form'

function parsePart(schema: z.ZodType, value: unknown, where: string): unknown {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const unknown = result.error.issues.find(each => each.code === 'unrecognized_keys')
  if (unknown !== undefined) throw fail('bad_request', { message: unknownWords(unknown, schema) })
  const issue = result.error.issues[0]
  const field = issue?.path.join('.') ?? ''
  throw fail('bad_request', {
    message: `${field === '' ? `The ${where}` : `${where === 'body' ? 'Field' : where} "${field}"`}: ${wordsOf(issue?.message ?? 'not valid')}.`,
  })
}

const unknownNamedMax = 10
const unknownNameCharsMax = 100

/**
 * Names the unknown fields of a strict body, and the fields that the body may have. Unknown fields are refused, because a caller could take an ignored
 * field for a protection that does not exist.
 */
function unknownWords(issue: z.core.$ZodIssueUnrecognizedKeys, schema: z.ZodType): string {
  const at = issue.path.map(part => `${String(part)}.`).join('')
  const names = issue.keys.slice(0, unknownNamedMax).map(name => JSON.stringify(at + name.slice(0, unknownNameCharsMax)))
  const known = issue.path.length === 0 && schema instanceof z.ZodObject ? ` This endpoint takes ${Object.keys(schema.shape).join(', ')}.` : ''
  return `${names.length === 1 ? 'The field' : 'The fields'} ${names.join(', ')} ${names.length === 1 ? 'is' : 'are'} unknown here.${known}`
}

/** Says "is missing" where zod says that it received undefined. */
function wordsOf(message: string): string {
  return message.replace(/^Invalid input: (expected .*), received undefined$/, 'is missing; $1')
}
