// Uses the Anthropic SDK as an agent: a message, a stream, and a tool that the SDK runs. It works with every model of the gateway, not only Claude.
import Anthropic from '@anthropic-ai/sdk'
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema'
import { connectAgent } from 'brigade-gateway/agents'

const { BRIGADE = 'http://127.0.0.1:8787', BRIGADE_KEY, MODEL = 'sandbox-chat' } = process.env
if (!BRIGADE_KEY) {
  console.error('Set BRIGADE_KEY to an API key of the gateway; its first start has printed one.')
  process.exit(2)
}

const agent = connectAgent({ baseUrl: BRIGADE, agent: 'example-anthropic', credential: BRIGADE_KEY, create: true })
const client = new Anthropic(agent.anthropic())
const textOf = message => message.content.map(block => block.text ?? '').join('')
const asked = content => ({ model: MODEL, max_tokens: 300, messages: [{ role: 'user', content }] })

console.log('message:', textOf(await client.messages.create(asked('Say hello to the crew.'))))

let pieces = 0
const stream = client.messages.stream(asked('Say hello to the crew.')).on('text', () => pieces++)
console.log('stream: ', textOf(await stream.finalMessage()), `(${pieces} pieces)`)

const weather = betaTool({
  name: 'weather',
  description: 'The weather at a place.',
  inputSchema: { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] },
  run: ({ place }) => {
    console.log('the model asked for the weather in', place)
    return 'Rain, 24 degrees.'
  },
})
// When a prompt begins with "call", the sandbox model calls that tool. A real model also understands the prompt.
const answer = await client.beta.messages.toolRunner({ ...asked('call weather {"place":"Mysuru"}'), tools: [weather], thread: false })
console.log('tool:   ', textOf(answer))
