import { fail } from '../../../platform/errors.ts'

/** The request header that lets a client repeat a call with a charge, so that the call is performed only once. */
export const idempotencyHeader = 'idempotency-key'

const idempotencyKeyShape = /^[\x21-\x7e]{1,255}$/

/** Returns the checked idempotency key, or undefined when the header is absent or empty. Throws `bad_request`. */
export function idempotencyKeyOf(header: string | string[] | undefined): string | undefined {
  const text = Array.isArray(header) ? header.join(',') : header
  if (text === undefined || text === '') return undefined
  if (!idempotencyKeyShape.test(text)) throw fail('bad_request', { message: 'Idempotency-Key must be 1 to 255 printable ASCII characters without spaces.' })
  return text
}

/** The request header that names an agent. */
export const agentIdHeader = 'x-br-agent-id'

/** The allowed form of `x-br-agent-id`, a label for reports and memory. It is printable, short, and safe in headers, CSV and object metadata. */
const agentLabelShape = /^[A-Za-z0-9][A-Za-z0-9 ._:@/-]{0,99}$/

/** Returns the checked label, or null when the header is absent or empty. Throws `bad_request`. */
export function agentLabelOf(header: string | string[] | undefined): string | null {
  if (header === undefined) return null
  const text = (Array.isArray(header) ? (header[0] ?? '') : header).trim()
  if (text === '') return null
  if (!agentLabelShape.test(text)) throw fail('bad_request', { message: 'x-br-agent-id must be 1 to 100 characters: letters, digits, space and . _ : @ / -' })
  return text
}
