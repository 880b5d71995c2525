import type { Binding } from './edge.ts'

/** The plain-text summary for models: what this is, how to sign in, how to connect, every endpoint in one line. */
export function llmsTextOf(bindings: readonly Binding[], baseUrl: string): string {
  const byTag = new Map<string, Binding[]>()
  for (const binding of bindings) byTag.set(binding.row.tag, [...(byTag.get(binding.row.tag) ?? []), binding])
  const sections = [...byTag].map(([tag, rows]) => `## ${tag}\n\n${rows.map(({ at, row }) => `- \`${at}\`: ${row.summary}`).join('\n')}`)
  return `# Brigade

> A model gateway for agents: OpenAI-compatible chat and embeddings over many providers, agent identities with short-lived tokens, monthly budgets in rupees, shared memory, and the same over MCP.

- Base URL for OpenAI SDKs: ${baseUrl}/v1
- Credential: \`Authorization: Bearer <API key br-… or agent token>\`
- Paths below /me take the cookie br_session of a signed-in person (${baseUrl}/auth); an agent token may read them, an API key may not
- MCP (streamable HTTP, same bearer): ${baseUrl}/mcp
- Schema: ${baseUrl}/openapi.json
- Errors are \`{"error":{"message","type","code"}}\`; branch on \`code\`. Do not retry budget_exceeded, agent_budget_exceeded or daily_limit_reached at once.
- Connect Claude Code: \`claude mcp add --transport http brigade ${baseUrl}/mcp --header "Authorization: Bearer $BRIGADE_KEY"\`
- Connect Codex: \`codex mcp add brigade --url ${baseUrl}/mcp --bearer-token-env-var BRIGADE_KEY\`

${sections.join('\n\n')}
`
}
