import type { Binding } from '../edge.ts'

/** Returns the plain-text summary for models: what the gateway is, how to sign in, how to connect, and every endpoint in one line. */
export function llmsTextOf(bindings: readonly Binding[], baseUrl: string): string {
  const byTag = new Map<string, Binding[]>()
  for (const binding of bindings) byTag.set(binding.row.tag, [...(byTag.get(binding.row.tag) ?? []), binding])
  const sections = [...byTag].map(([tag, rows]) => `## ${tag}\n\n${rows.map(({ at, row }) => `- \`${at}\`: ${row.summary}`).join('\n')}`)
  return `# Brigade

> A model gateway for agents: many providers behind the formats of OpenAI (chat completions, responses, embeddings, images, audio) and Anthropic (messages), agent identities with short-lived tokens, monthly budgets in rupees, shared memory, and the same over MCP.

- Base URL for OpenAI SDKs: ${baseUrl}/v1; for the SDK of Anthropic and Claude Code: ${baseUrl} (they add /v1/messages)
- Models: ids of ${baseUrl}/v1/models, or auto, auto:cheapest, auto:fastest, auto:best, auto:code, auto:reasoning, auto:vision and the like. While no provider is configured: sandbox-chat, sandbox-reasoning, sandbox-vision, sandbox-embed, sandbox-image, sandbox-audio, sandbox-speech, sandbox-rerank, sandbox-moderation
- Images to edit and recordings are sent as multipart/form-data; everything else is JSON
- Credential: \`Authorization: Bearer <API key br-… or agent token>\`
- Paths below /me take the cookie br_session of a signed-in person (${baseUrl}/auth); an agent token may read them, an API key may not
- MCP (streamable HTTP, same bearer, no OAuth login): ${baseUrl}/mcp; \`?toolsets=core,memory\` lists fewer tools; server card: ${baseUrl}/mcp/server-card
- MCP for clients that only know how to log in, where the operator has named an issuer: ${baseUrl}/orgs/<organisation id>/mcp
- Schema: ${baseUrl}/openapi.json
- Errors are \`{"error":{"message","type","code"}}\`; branch on \`code\`. Do not retry budget_exceeded, agent_budget_exceeded or daily_limit_reached immediately.
- Replies name the provider (x-br-provider), the cost (x-br-cost-inr) and what could not be carried (x-br-dropped-params). Idempotency-Key makes a retry safe.

## connect

The commands of brigade take the gateway from \`BRIGADE\` (${baseUrl}) and the credential from \`BRIGADE_KEY\`, or both from \`brigade login\`; none takes a credential as an argument.

- Write the settings of a client, models and tools: \`npx brigade connect codex --write\`; without \`--write\` it prints them; \`npx brigade connect --help\` names the clients
- A client that starts MCP servers as programs: \`npx brigade mcp\` (stdio); with \`--agent <name>\` as that agent, on tokens that renew themselves
- A token of an agent: \`npx brigade agent token --agent <name or id>\`; \`--header\` and \`--headers-json\` print it as clients ask for it
- Claude Code, models: \`ANTHROPIC_BASE_URL=${baseUrl} ANTHROPIC_AUTH_TOKEN=$BRIGADE_KEY ANTHROPIC_MODEL=auto ANTHROPIC_DEFAULT_HAIKU_MODEL=auto:cheapest claude\`
- Claude Code, tools: \`claude mcp add --transport http brigade ${baseUrl}/mcp --header "Authorization: Bearer $BRIGADE_KEY"\`
- Codex, models: a provider with base_url ${baseUrl}/v1, env_key BRIGADE_KEY, wire_api responses
- Codex, tools: \`codex mcp add brigade --url ${baseUrl}/mcp --bearer-token-env-var BRIGADE_KEY\`
- Programs in TypeScript: \`import { connectAgent } from 'brigade-gateway/agents'\` gives the options for the SDKs of OpenAI, Anthropic, LangChain and others, with tokens that renew themselves

${sections.join('\n\n')}
`
}
