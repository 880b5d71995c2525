import { placeholderKey } from '../agent-fetch.ts'

/** Where frameworks connect, and the fetch that they use. */
export interface AdapterTarget {
  /** The address of the gateway without a path. */
  readonly baseUrl: string
  /** Signs requests to the gateway. */
  readonly fetch: typeof fetch
}

/** Returns the options for `new OpenAI(…)`. The null values stop the client from reading another account's settings from environment variables. */
export function openaiOptions({ baseUrl, fetch }: AdapterTarget) {
  return { baseURL: `${baseUrl}/v1`, apiKey: placeholderKey, organization: null, project: null, fetch }
}

/** Returns the options for `new Anthropic(…)`. */
export function anthropicOptions({ baseUrl, fetch }: AdapterTarget) {
  return { baseURL: baseUrl, authToken: placeholderKey, fetch }
}

/** Returns the options for `createOpenAICompatible(…)`, `createOpenAI(…)` and `createAnthropic(…)` of the AI SDK. */
export function aiSdkOptions({ baseUrl, fetch }: AdapterTarget) {
  return { name: 'brigade', baseURL: `${baseUrl}/v1`, apiKey: placeholderKey, fetch }
}

/** Returns options for `new ChatOpenAI({ model, ...… })` and the other classes of @langchain/openai. */
export function langchainOptions({ baseUrl, fetch }: AdapterTarget) {
  return { apiKey: placeholderKey, configuration: { baseURL: `${baseUrl}/v1`, organization: null, project: null, fetch } }
}

/** Returns the arguments for `new StreamableHTTPClientTransport(...…)` of both MCP SDKs. */
export function mcpArguments(
  { baseUrl, fetch }: AdapterTarget,
  { toolsets }: { readonly toolsets?: readonly string[] } = {},
): [url: URL, options: { fetch: typeof fetch }] {
  const url = new URL(`${baseUrl}/mcp`)
  if (toolsets !== undefined) url.searchParams.set('toolsets', toolsets.join(','))
  return [url, { fetch }]
}
