// Uses Claude's memory tool (memory_20250818) on shared memory, with the tool runner of the SDK. One session writes, and the next session reads.
import Anthropic from '@anthropic-ai/sdk'
import { brigadeMemoryFunction, brigadeMemoryTool, connectAgent } from 'brigade-gateway/agents'

const { BRIGADE = 'http://127.0.0.1:8787', BRIGADE_KEY, MODEL = 'sandbox-chat' } = process.env
if (!BRIGADE_KEY) {
  console.error('Set BRIGADE_KEY to an API key of the gateway; its first start has printed one.')
  process.exit(2)
}

const agent = connectAgent({ baseUrl: BRIGADE, agent: 'example-claude', credential: BRIGADE_KEY, create: true })
const client = new Anthropic(agent.anthropic())

// Claude knows the tool by its type, memory_20250818. For every other model, the toolkit offers the same commands as a function.
const makeTool = MODEL.startsWith('claude') ? brigadeMemoryTool : brigadeMemoryFunction
const root = 'agents/example-claude/'
const tool = makeTool({ memory: agent.memory, root })
const { run } = tool
tool.run = async command => {
  const result = await run(command)
  console.log(`${command.command} ${command.path}: ${result.split('\n')[0]}`)
  return result
}

async function session(prompt) {
  const messages = [{ role: 'user', content: prompt }]
  await client.beta.messages.toolRunner({ model: MODEL, max_tokens: 1000, messages, tools: [tool], thread: false })
}

// `create` refuses a file that already exists, so each run of this program uses a new name.
const file = `/memories/build-${Date.now()}.md`
await session(`call memory ${JSON.stringify({ command: 'create', path: file, file_text: 'The build is red.\n' })}`)
await session(`call memory ${JSON.stringify({ command: 'str_replace', path: file, old_str: 'red', new_str: 'green' })}`)
await session(`call memory ${JSON.stringify({ command: 'view', path: file })}`)

// Every other agent can read the file under its key and sees its author.
const found = await agent.memory.read(file.replace('/memories/', root))
console.log(found.key, 'holds', JSON.stringify(found.text), 'by', found.provenance.agentName)
