// The kill switch: a stream is cut while it runs, the program learns why, and nothing more is sent.
import { connectAgent, gatewayClient } from 'brigade-gateway/agents'
import OpenAI from 'openai'

const { BRIGADE = 'http://127.0.0.1:8787', BRIGADE_KEY, MODEL = 'sandbox-chat' } = process.env
if (!BRIGADE_KEY) {
  console.error('Set BRIGADE_KEY to an API key of the gateway; its first start has printed one.')
  process.exit(2)
}

// Somebody at another desk, or a program that watches, has the key.
const owner = gatewayClient({ baseUrl: BRIGADE, credential: BRIGADE_KEY })
const { id } = await owner.json('POST', '/v1/me/agents', { json: { name: 'example-runaway' } })

const agent = connectAgent({
  baseUrl: BRIGADE,
  agent: id,
  credential: BRIGADE_KEY,
  // Called once. The place to end the rest of the program.
  onRevoked: error => console.log('onRevoked:', error.code),
})

// In the sandbox "slow 600" is an answer of a minute.
const messages = [{ role: 'user', content: MODEL.startsWith('sandbox') ? 'slow 600' : 'Write a very long story.' }]
const client = new OpenAI(agent.openai())
let words = 0
try {
  for await (const chunk of await client.chat.completions.create({ model: MODEL, messages, stream: true })) {
    words += chunk.choices[0]?.delta.content ? 1 : 0
    if (words === 5) await owner.json('POST', `/v1/me/agents/${id}/revoke`)
  }
} catch (error) {
  console.log('the stream was cut:', error.code ?? error.message)
}

// No SDK tries this again, and no request leaves this program.
const next = await client.chat.completions.create({ model: MODEL, messages }).catch(error => error)
console.log('the next call:', next.status, next.code)
