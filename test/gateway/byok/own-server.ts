import { type RecordedRequest, startUpstream, type UpstreamScript, type UpstreamServer } from '../../harness/upstream-server.ts'

/** An OpenAI-compatible server of an organisation, with tools and errors. It requires a key when one is given. */
export interface OwnServer extends UpstreamServer {
  /** `host:port`, the form that OUTBOUND_ALLOW uses. */
  readonly hostPort: string
  readonly port: number
  /** Forgets all requests, and from now on answers as a good server does. */
  behave(key?: string | null): void
  /** From now on answers as `script` says, and as a good server does when `script` returns null. */
  misbehave(script: (request: RecordedRequest) => UpstreamScript | null): void
}

export async function startOwnServer(): Promise<OwnServer> {
  const upstream = await startUpstream()
  const { host, port } = new URL(upstream.url)
  return {
    ...upstream,
    hostPort: host,
    port: Number(port),
    behave(key = null) {
      upstream.reset()
      upstream.script(request => good(request, key))
    },
    misbehave(script) {
      upstream.reset()
      upstream.script(request => script(request) ?? good(request, null))
    },
  }
}

/** A reply with a tool call in OpenAI's format. */
export const toolReply = (args: unknown = '{"city":"Pune"}') => ({
  id: 'chatcmpl-tool',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: null, tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: args } }] },
      finish_reason: 'tool_calls',
    },
  ],
  usage: { prompt_tokens: 20, completion_tokens: 9, total_tokens: 29 },
})

const refusal = (message: string) => ({ error: { message, type: 'invalid_request_error', code: null } })

export const isMalformed = (request: RecordedRequest): boolean => !Array.isArray(request.json?.['messages'])
export const asksForTool = (request: RecordedRequest): boolean => request.json?.['tools'] !== undefined
export const isStream = (request: RecordedRequest): boolean => request.json?.['stream'] === true

function good(request: RecordedRequest, key: string | null): UpstreamScript {
  if (key !== null && request.headers.authorization !== `Bearer ${key}`) return { status: 401, body: refusal('Incorrect API key.') }
  if (isMalformed(request)) return { status: 400, body: refusal('messages must be a list') }
  return asksForTool(request) ? { body: toolReply() } : {}
}
