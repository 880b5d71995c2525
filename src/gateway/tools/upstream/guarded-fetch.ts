import type { Outbound } from '../../../platform/outbound/outbound.ts'
import type { OutboundReply } from '../../../platform/outbound/upstream-body.ts'
import { ValueCount } from '../json-bounds.ts'
import type { Exchange } from './exchange.ts'
import { isBeforeSending, networkError, statusError, UpstreamError } from './upstream-error.ts'
import type { UpstreamTarget } from './upstream-target.ts'

/** The headers of the protocol that a request may have. Every other header stays here. */
const protocolHeaders = new Set(['accept', 'content-type', 'last-event-id', 'mcp-method', 'mcp-name', 'mcp-protocol-version', 'mcp-session-id'])
const parameterHeader = 'mcp-param-'
/** Time beyond the deadline of the exchange, which ends first. */
const graceMs = 5000

/**
 * Returns the `fetch` of one exchange. It connects through the URL guard, to the registered address only, and follows no redirect. It sends the headers of
 * the protocol and the server's own credential, and nothing else. It asks for no compression and accepts none, so the counted bytes are the real ones.
 */
export function guardedFetch(outbound: Pick<Outbound, 'toUserUrl'>, target: UpstreamTarget, exchange: Exchange): typeof fetch {
  return async (input, init = {}) => {
    const url = input instanceof Request ? input.url : String(input)
    const method = methodOf(init.method)
    const asked = new Headers(init.headers)
    if (url !== new URL(target.url).href) throw failedWith(exchange, new UpstreamError('protocol', 'the exchange left the registered address'))
    // A stream of news is not wanted. Only a stream that broke off is taken up again.
    if (method === 'GET' && !asked.has('last-event-id')) return new Response(null, { status: 405 })
    const isCall = exchange.hasCallBegun && !exchange.isSent
    if (isCall) exchange.isSent = true
    const timeoutMs = target.timeoutMs + graceMs
    let reply: OutboundReply
    try {
      reply = await outbound.toUserUrl({
        method,
        url,
        headers: headersOf(asked, target),
        ...(typeof init.body === 'string' ? { body: init.body } : {}),
        ...(init.signal ? { signal: init.signal } : {}),
        headersTimeoutMs: timeoutMs,
        bodyTimeoutMs: timeoutMs,
      })
    } catch (error) {
      if (init.signal?.aborted === true) throw error
      if (isCall && isBeforeSending(error)) exchange.isSent = false
      throw failedWith(exchange, networkError(error))
    }
    return responseOf(reply, exchange)
  }
}

function headersOf(asked: Headers, { header }: UpstreamTarget): Record<string, string> {
  const headers: Record<string, string> = { 'accept-encoding': 'identity', 'user-agent': 'brigade' }
  for (const [name, value] of asked) if (protocolHeaders.has(name) || name.startsWith(parameterHeader)) headers[name] = value
  if (header !== null) headers[header.name.toLowerCase()] = header.value
  return headers
}

function responseOf({ status, headers, body }: OutboundReply, exchange: Exchange): Response {
  const refused = statusError(status, textOf(headers['retry-after'])) ?? encodingError(headers['content-encoding'])
  if (refused !== null) {
    body.destroy()
    throw failedWith(exchange, refused)
  }
  const shown = new Headers()
  for (const name of ['content-type', 'mcp-session-id']) {
    const value = textOf(headers[name])
    if (value !== null) shown.set(name, value)
  }
  if (status === 204 || status === 205) {
    body.destroy()
    return new Response(null, { status, headers: shown })
  }
  return new Response(countedStream(body, exchange), { status, headers: shown })
}

function countedStream(body: OutboundReply['body'], exchange: Exchange): ReadableStream<Uint8Array> {
  const chunks = body[Symbol.asyncIterator]()
  const values = new ValueCount()
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const next = await chunks.next()
        if (next.done === true) return controller.close()
        exchange.count(next.value.byteLength, values.add(next.value))
        controller.enqueue(next.value)
      } catch (error) {
        body.destroy()
        const shown = networkError(error)
        exchange.fail(shown)
        controller.error(shown)
      }
    },
    cancel() {
      body.destroy()
    },
  })
}

function encodingError(encoding: string | string[] | undefined): UpstreamError | null {
  const name = textOf(encoding)
  return name === null || name.toLowerCase() === 'identity' ? null : new UpstreamError('protocol', 'the server compressed a reply, and nobody asked for that')
}

function failedWith(exchange: Exchange, error: UpstreamError): UpstreamError {
  exchange.fail(error)
  return error
}

const textOf = (value: string | string[] | undefined): string | null => (Array.isArray(value) ? (value[0] ?? null) : (value ?? null))

function methodOf(method: string | undefined): 'GET' | 'POST' | 'DELETE' {
  if (method === 'POST' || method === 'DELETE') return method
  return 'GET'
}
