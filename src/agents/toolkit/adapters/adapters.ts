import { placeholderKey } from '../agent-fetch.ts'

/** Where frameworks connect. */
export interface AdapterTarget {
  /** Without a path. */
  readonly baseUrl: string
  /** Signs what goes there. */
  readonly fetch: typeof fetch
}

/** For `new OpenAI(…)`. The environment variables for another account are not read. */
export function openaiOptions({ baseUrl, fetch }: AdapterTarget) {
  return { baseURL: `${baseUrl}/v1`, apiKey: placeholderKey, organization: null, project: null, fetch }
}

/** For `new Anthropic(…)`. */
export function anthropicOptions({ baseUrl, fetch }: AdapterTarget) {
  return { baseURL: baseUrl, authToken: placeholderKey, fetch }
}

/** For `createOpenAICompatible(…)`, `createOpenAI(…)` and `createAnthropic(…)` of the AI SDK. */
export function aiSdkOptions({ baseUrl, fetch }: AdapterTarget) {
  return { name: 'brigade', baseURL: `${baseUrl}/v1`, apiKey: placeholderKey, fetch }
}

/** For `new ChatOpenAI({ model, ...… })` and the other classes of @langchain/openai. */
export function langchainOptions({ baseUrl, fetch }: AdapterTarget) {
  return { apiKey: placeholderKey, configuration: { baseURL: `${baseUrl}/v1`, organization: null, project: null, fetch } }
}

/** For `new StreamableHTTPClientTransport(...…)` of both MCP SDKs. */
export function mcpArguments(
  { baseUrl, fetch }: AdapterTarget,
  { toolsets }: { readonly toolsets?: readonly string[] } = {},
): [url: URL, options: { fetch: typeof fetch }] {
  const url = new URL(`${baseUrl}/mcp`)
  if (toolsets !== undefined) url.searchParams.set('toolsets', toolsets.join(','))
  return [url, { fetch }]
}
