/** What a person copies into a program that is not a coding client. The key stays in a variable, so a copied text holds no secret. */

/** An agent for which a program calls. */
export interface ConnectAgent {
  readonly id: number
  readonly name: string
  readonly parent_id: number | null
}

/** The value of `x-br-agent-id`. It is the id, because a name can have characters that no header takes, and a child has no other. */
const agentHeader = 'x-br-agent-id'

/** Returns the first call with curl. */
export function curlCall(origin: string, agent: ConnectAgent | null, model = 'auto'): string {
  const header = agent === null ? '' : ` \\\n  -H "${agentHeader}: ${agent.id}"`
  return `curl ${origin}/v1/chat/completions \\\n  -H "authorization: Bearer $BRIGADE_KEY"${header} \\\n  -H "content-type: application/json" \\\n  -d '{"model":"${model}","messages":[{"role":"user","content":"Hello"}]}'`
}

/** Returns programs for the SDKs that people use. */
export function sdkSnippets(origin: string, agent: ConnectAgent | null) {
  const headers = (name: string): string => (agent === null ? '' : `\n  ${name}: { '${agentHeader}': '${agent.id}' },`)
  const python = agent === null ? '' : `\n    default_headers={"${agentHeader}": "${agent.id}"},`
  return [
    {
      id: 'openai',
      label: 'OpenAI',
      text: `import OpenAI from 'openai'\n\nconst client = new OpenAI({\n  baseURL: '${origin}/v1',\n  apiKey: process.env.BRIGADE_KEY,${headers('defaultHeaders')}\n})\nconst reply = await client.chat.completions.create({\n  model: 'auto',\n  messages: [{ role: 'user', content: 'Hello' }],\n})`,
    },
    {
      id: 'python',
      label: 'OpenAI for Python',
      text: `import os\nfrom openai import OpenAI\n\nclient = OpenAI(\n    base_url="${origin}/v1",\n    api_key=os.environ["BRIGADE_KEY"],${python}\n)\nreply = client.chat.completions.create(\n    model="auto",\n    messages=[{"role": "user", "content": "Hello"}],\n)`,
    },
    {
      id: 'anthropic',
      label: 'Anthropic',
      text: `import Anthropic from '@anthropic-ai/sdk'\n\nconst client = new Anthropic({\n  baseURL: '${origin}',\n  apiKey: process.env.BRIGADE_KEY,${headers('defaultHeaders')}\n})\nconst reply = await client.messages.create({\n  model: 'auto',\n  max_tokens: 1024,\n  messages: [{ role: 'user', content: 'Hello' }],\n})`,
    },
    {
      id: 'ai-sdk',
      label: 'AI SDK',
      text: `import { createOpenAICompatible } from '@ai-sdk/openai-compatible'\nimport { generateText } from 'ai'\n\nconst brigade = createOpenAICompatible({\n  name: 'brigade',\n  baseURL: '${origin}/v1',\n  apiKey: process.env.BRIGADE_KEY,${headers('headers')}\n})\nconst { text } = await generateText({ model: brigade('auto'), prompt: 'Hello' })`,
    },
  ] as const
}
