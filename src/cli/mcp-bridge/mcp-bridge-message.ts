/** Parses JSON-RPC messages. It reads only what the bridge needs to pass them on unchanged. */

/** A message of the client. */
export type ClientMessage =
  | { readonly kind: 'request'; readonly id: string | number; readonly method: string; readonly text: string; readonly value: Fields }
  | { readonly kind: 'notification'; readonly method: string; readonly text: string; readonly value: Fields }
  /** The client's answer to a request of the server. */
  | { readonly kind: 'answer'; readonly text: string; readonly value: Fields }

export type Fields = Readonly<Record<string, unknown>>

/** Returns the messages of a line. A line is one message or a batch. Returns null when the line is not JSON-RPC. */
export function messagesOf(line: string): ClientMessage[] | null {
  const value = jsonOf(line)
  if (!Array.isArray(value)) {
    const message = messageOf(line, value)
    return message === null ? null : [message]
  }
  const messages = value.map(item => messageOf(JSON.stringify(item), item))
  return messages.includes(null) || messages.length === 0 ? null : messages.filter(message => message !== null)
}

function messageOf(text: string, value: unknown): ClientMessage | null {
  if (!isFields(value)) return null
  const { id, method } = value
  const hasId = typeof id === 'string' || typeof id === 'number'
  if (typeof method === 'string') {
    if (hasId) return { kind: 'request', id, method, text, value }
    return id === undefined ? { kind: 'notification', method, text, value } : null
  }
  return hasId && ('result' in value || 'error' in value) ? { kind: 'answer', text, value } : null
}

/** Returns parsed JSON. Returns undefined when the text is not JSON. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Returns whether a value is an object with fields. */
export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns the field at a path of names. Returns undefined when there is no such field. */
export function fieldAt(value: unknown, ...path: readonly string[]): unknown {
  let at = value
  for (const name of path) at = isFields(at) && Object.hasOwn(at, name) ? at[name] : undefined
  return at
}

/** For each method, the parameter whose value the header Mcp-Name repeats. */
const namedBy: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
  ['tasks/get', 'taskId'],
  ['tasks/update', 'taskId'],
  ['tasks/cancel', 'taskId'],
])

/**
 * Returns the HTTP headers for a message. In protocol version 2026-07-28, every message names its version, and headers repeat fields of the body.
 * Earlier protocol versions negotiate `version` once, in `initialize`.
 */
export function protocolHeaders(message: ClientMessage, version: string | null): Record<string, string> {
  const inMessage = fieldAt(message.value, 'params', '_meta', 'io.modelcontextprotocol/protocolVersion')
  if (typeof inMessage !== 'string') return version === null ? {} : { 'mcp-protocol-version': version }
  const headers: Record<string, string> = { 'mcp-protocol-version': headerText(inMessage) }
  if (message.kind === 'answer') return headers
  headers['mcp-method'] = headerText(message.method)
  const name = fieldAt(message.value, 'params', namedBy.get(message.method) ?? '')
  if (namedBy.has(message.method) && typeof name === 'string') headers['mcp-name'] = headerText(name)
  return headers
}

const sentinel = /^=\?base64\?.*\?=$/i

/** Returns a text in a form that a header can contain. Other characters are converted to the base64 form of the protocol. */
function headerText(text: string): string {
  const isPlain = text !== '' && /^[\x20-\x7e]*$/.test(text) && text.trim() === text && !sentinel.test(text)
  return isPlain ? text : `=?base64?${Buffer.from(text).toString('base64')}?=`
}
