// Shows the kill switch: a revoke cuts a running stream, the program receives the reason, and sends no more requests.
import { connectAgent, gatewayClient } from 'brigade-gateway/agents'
import OpenAI from 'openai'

const { BRIGADE = 'http://127.0.0.1:8787', BRIGADE_KEY, MODEL = 'sandbox-chat' } = process.env
if (!BRIGADE_KEY) {
  console.error('Set BRIGADE_KEY to an API key of the gateway; its first start has printed one.')
  process.exit(2)
}

// Another person, or a monitoring program, has the API key.
const owner = gatewayClient({ baseUrl: BRIGADE, credential: BRIGADE_KEY })
const { id } = await owner.json('POST', '/v1/me/agents', { json: { name: 'example-runaway' } })

const agent = connectAgent({
  baseUrl: BRIGADE,
  agent: id,
  credential: BRIGADE_KEY,
  // Called once. End the rest of your program here.
  onRevoked: error => console.log('onRevoked:', error.code),
})

// The sandbox model answers "slow 600" for a minute.
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

// The next call fails without a request, and no SDK retries it.
const next = await client.chat.completions.create({ model: MODEL, messages }).catch(error => error)
console.log('the next call:', next.status, next.code)
