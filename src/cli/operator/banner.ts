import type { RunningGateway } from '../../composition/serve.ts'
import type { Terminal } from '../../platform/observe/terminal/terminal.ts'
import { version } from '../../version.ts'
import { terminalBanner } from './terminal-banner.ts'

export interface BannerOptions {
  /** Number of processes that serve the port. */
  readonly workers: number
  /** The terminal that shows the text. Null when a program reads it. */
  readonly terminal: Terminal | null
  /** Time from the start of the process, in milliseconds. */
  readonly readyMs: number
}

/**
 * Returns the text that a start prints: a short one for a person at a terminal, and one with every line to paste for a file or a program. Both contain the
 * address, and on the first start of an installation the secrets. Decision 0753 says why there are two.
 */
export function banner(gateway: RunningGateway, { workers, terminal, readyMs }: BannerOptions): Promise<string> {
  if (terminal === null) return Promise.resolve(wholeBanner(gateway, workers))
  return terminalBanner(gateway, { workers, readyMs, paint: terminal.paint })
}

function wholeBanner({ baseUrl, app, firstRun }: RunningGateway, workers: number): string {
  const model = app.exampleModel()
  const where = `Brigade ${version} listens on ${baseUrl}  (${app.describe()}${workers === 1 ? '' : `; ${workers} workers`})\n`
  if (firstRun === null)
    return `${where}Brigade shows keys and tokens only when it makes them. In the folder in which you started it:
  a first organisation  npx brigade admin create --email <address> --org <name>
  a new key             npx brigade admin key --org <id>
  to sign in            npx brigade admin sign-in --email <address>
`
  return `${where}
A first organisation was made, owned by ${firstRun.email}. These secrets are shown once and stored hashed:

  API key      ${firstRun.key}
  agent token  ${firstRun.agentToken}
               (agent ${firstRun.agentId}, for 15 minutes; a new one: POST /v1/me/agents/${firstRun.agentId}/token)

Any OpenAI client; GET /v1/models lists the models:

  curl ${baseUrl}/v1/chat/completions -H "Authorization: Bearer ${firstRun.key}" -H "content-type: application/json" -d '{"model":"${model}","messages":[{"role":"user","content":"Hello"}]}'

  import OpenAI from 'openai'
  const client = new OpenAI({ baseURL: '${baseUrl}/v1', apiKey: '${firstRun.key}' })
  const reply = await client.chat.completions.create({ model: '${model}', messages: [{ role: 'user', content: 'Hello' }] })
  console.log(reply.choices[0].message.content)

Claude Code, its own model calls (docs/guides/messages.md), and the tools of this gateway:

  ANTHROPIC_BASE_URL=${baseUrl} ANTHROPIC_AUTH_TOKEN=${firstRun.key} ANTHROPIC_MODEL=${model} ANTHROPIC_DEFAULT_HAIKU_MODEL=${model} claude
  claude mcp add --transport http brigade ${baseUrl}/mcp --header "Authorization: Bearer ${firstRun.key}"

Codex, the same (docs/guides/responses.md):

  export BRIGADE_KEY=${firstRun.key}
  codex -c model=${model} -c model_provider=brigade -c 'model_providers.brigade={name="Brigade",base_url="${baseUrl}/v1",env_key="BRIGADE_KEY",wire_api="responses"}'
  codex mcp add brigade --url ${baseUrl}/mcp --bearer-token-env-var BRIGADE_KEY

Or have it written into their own settings, in the folder of this start; claude-code, cursor, opencode and vscode too:

  BRIGADE=${baseUrl} npx brigade connect codex --write

Sign in as the owner, for members, keys and what they may do: npx brigade admin sign-in --email ${firstRun.email}

The whole main job, played on a gateway of its own: npx brigade demo
`
}
