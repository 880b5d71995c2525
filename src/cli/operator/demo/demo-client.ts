interface HttpReply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly json: Record<string, unknown>
}

export type Http = (method: string, path: string, body?: unknown) => Promise<HttpReply>

/** Returns a plain HTTP client with a bearer credential. It sends what curl would send. */
export function http(baseUrl: string, token: string): Http {
  return async (method, path, body) => {
    const response = await fetch(`${baseUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, json: parse(text) }
  }
}

function parse(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

/** Calls one MCP tool with one POST, as a stateless client does. Throws when the tool says that it failed. */
export async function callTool(post: Http, name: string, args: Record<string, unknown>): Promise<{ text: string; structured: Record<string, unknown> }> {
  const reply = await post('POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } })
  const message = reply.json['jsonrpc'] === undefined ? lastMessage(reply.text) : reply.json
  const result = message['result'] as { isError?: boolean; content?: { text?: string }[]; structuredContent?: Record<string, unknown> } | undefined
  const text = result?.content?.[0]?.text ?? ''
  if (reply.status !== 200 || result === undefined || result.isError === true) throw new Error(`${name}: ${reply.status} ${text === '' ? reply.text : text}`)
  return { text, structured: result.structuredContent ?? {} }
}

function lastMessage(sse: string): Record<string, unknown> {
  const data = sse.split('\n').filter(line => line.startsWith('data: '))
  return parse(data.at(-1)?.slice(6) ?? '')
}

/** Returns the value, or throws an error that says what is missing. */
export function must<T>(value: T | null | undefined, what: string): T {
  if (value === null || value === undefined) throw new Error(what)
  return value
}
