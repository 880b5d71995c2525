// Uses OpenAI's Agents SDK as an agent: a tool, a handoff to a second agent, and a stream.
import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents'
import { connectAgent } from 'brigade-gateway/agents'
import OpenAI from 'openai'
import { z } from 'zod'

const { BRIGADE = 'http://127.0.0.1:8787', BRIGADE_KEY, MODEL = 'sandbox-chat' } = process.env
if (!BRIGADE_KEY) {
  console.error('Set BRIGADE_KEY to an API key of the gateway; its first start has printed one.')
  process.exit(2)
}

const identity = connectAgent({ baseUrl: BRIGADE, agent: 'example-agents-sdk', credential: BRIGADE_KEY, create: true })
// Tracing is off, because traces would go to OpenAI and need a key there. With useResponses: true the SDK uses the Responses API.
const modelProvider = new OpenAIProvider({ openAIClient: new OpenAI(identity.openaiAgents()), useResponses: false })
const runner = new Runner({ modelProvider, tracingDisabled: true })

const remember = tool({
  name: 'remember',
  description: 'Keeps a note for all agents.',
  parameters: z.object({ note: z.string() }),
  execute: async ({ note }) => {
    const { key } = await identity.memory.append('agents/example-agents-sdk/log', note)
    console.log('kept as', key)
    return key
  },
})
const keeper = new Agent({ name: 'keeper', model: MODEL, instructions: 'You keep notes.', tools: [remember] })
const front = new Agent({ name: 'front', model: MODEL, instructions: 'You hand over what is to be kept.', handoffs: [keeper] })

// When a prompt begins with "call", the sandbox model calls that tool. A real model also understands the prompt.
const kept = await runner.run(keeper, 'call remember {"note":"The lamp needs oil."}')
console.log('tool:   ', kept.finalOutput)

const handed = await runner.run(front, 'call transfer_to_keeper {}')
console.log('handoff:', handed.lastAgent.name, 'answered:', handed.finalOutput)

const stream = await runner.run(keeper, 'Say hello to the crew.', { stream: true })
let pieces = 0
for await (const _piece of stream.toTextStream()) pieces += 1
await stream.completed
console.log('stream: ', stream.finalOutput, `(${pieces} pieces)`)
