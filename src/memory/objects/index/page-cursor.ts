import { fail, type GatewayError } from '../../../platform/errors.ts'

/** Returns a cursor in the form that clients get. It is opaque and valid for one kind of list. */
export function cursorText(kind: string, position: string): string {
  return Buffer.from(`${kind}:${position}`).toString('base64url')
}

/** Returns the position in a cursor of that kind. Throws `bad_request`. */
export function cursorFrom(kind: string, cursor: string): string {
  const text = Buffer.from(cursor, 'base64url').toString('utf8')
  if (!text.startsWith(`${kind}:`) || cursorText(kind, text.slice(kind.length + 1)) !== cursor) throw notOurCursor()
  return text.slice(kind.length + 1)
}

/** Returns the error for a cursor that the gateway did not make for this list. */
export function notOurCursor(cause?: unknown): GatewayError {
  return fail('bad_request', { cause, message: 'Not a cursor of this list. Send next_cursor of the page before, unchanged.' })
}
