import { refusalOf, send, unreachable } from './call.ts'

/** A reply that is not JSON. */
export interface BytesReply {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly headers: Headers
}

/** Reads an address that answers with bytes. Throws an ApiError for each refusal, as `api` does. */
export async function readBytes(url: string, signal?: AbortSignal): Promise<BytesReply> {
  const response = await send(url, { credentials: 'same-origin', ...(signal === undefined ? {} : { signal }) })
  if (!response.ok) throw refusalOf(response, await response.text())
  const bytes = await response.arrayBuffer().catch((cause: unknown) => Promise.reject(unreachable(cause)))
  return { bytes: new Uint8Array(bytes), headers: response.headers }
}

/** The state that an object must have for a write: the one with this ETag, or none. */
export type WriteCondition = { readonly ifMatch: string } | { readonly ifNoneMatch: '*' }

/** Writes a text to an address. Throws an ApiError for each refusal: 412 when the condition does not hold. */
export async function writeText(url: string, text: string, condition: WriteCondition): Promise<Headers> {
  const conditions: Record<string, string> = 'ifMatch' in condition ? { 'if-match': condition.ifMatch } : { 'if-none-match': condition.ifNoneMatch }
  const headers = { 'content-type': 'text/plain; charset=utf-8', accept: 'application/json', ...conditions }
  const response = await send(url, { method: 'PUT', credentials: 'same-origin', headers, body: text })
  if (!response.ok) throw refusalOf(response, await response.text())
  return response.headers
}
