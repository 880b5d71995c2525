// Uses the AI SDK as an agent: a stream in which the model calls the tools of shared memory.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { stepCountIs, streamText } from 'ai'
import { aiSdkMemoryTools, connectAgent } from 'brigade-gateway/agents'

const { BRIGADE = 'http://127.0.0.1:8787', BRIGADE_KEY, MODEL = 'sandbox-chat' } = process.env
if (!BRIGADE_KEY) {
  console.error('Set BRIGADE_KEY to an API key of the gateway; its first start has printed one.')
  process.exit(2)
}

const agent = connectAgent({ baseUrl: BRIGADE, agent: 'example-ai-sdk', credential: BRIGADE_KEY, create: true })
// createOpenAI and createAnthropic take the same options.
const brigade = createOpenAICompatible(agent.aiSdk())

// Pass all memory tools or only some of them, together with your own tools.
const { memory_append, memory_search } = aiSdkMemoryTools({ memory: agent.memory })

async function ask(prompt) {
  const result = streamText({
    model: brigade(MODEL),
    prompt,
    tools: { memory_append, memory_search },
    stopWhen: stepCountIs(5),
    onError: ({ error }) => {
      throw error
    },
  })
  for await (const part of result.stream) {
    if (part.type === 'text-delta') process.stdout.write(part.text)
    if (part.type === 'tool-result') console.log(`${part.toolName}(${JSON.stringify(part.input)}) gave`, JSON.stringify(part.output))
    if (part.type === 'finish') process.stdout.write('\n')
  }
}

// When a prompt begins with "call", the sandbox model calls that tool. A real model also understands the prompt.
await ask('call memory_append {"path":"agents/example-ai-sdk/log","content":"The tide was high at noon."}')
await ask('call memory_search {"query":"tide","prefix":"agents/example-ai-sdk/"}')
