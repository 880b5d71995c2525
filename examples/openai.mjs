// Uses the OpenAI SDK as an agent: a whole answer, a stream, and the Responses API. The toolkit mints and renews the tokens.
import { connectAgent } from 'brigade-gateway/agents'
import OpenAI from 'openai'

const { BRIGADE = 'http://127.0.0.1:8787', BRIGADE_KEY, MODEL = 'sandbox-chat' } = process.env
if (!BRIGADE_KEY) {
  console.error('Set BRIGADE_KEY to an API key of the gateway; its first start has printed one.')
  process.exit(2)
}

// The API key creates the agent if it does not exist, and mints its tokens. The agent makes all calls below.
const agent = connectAgent({ baseUrl: BRIGADE, agent: 'example-openai', credential: BRIGADE_KEY, create: true })
const client = new OpenAI(agent.openai())
const messages = [{ role: 'user', content: 'Say hello to the crew.' }]

// Reply headers name the provider that answered and the cost of the call.
const { data, response } = await client.chat.completions.create({ model: MODEL, messages }).withResponse()
console.log('chat:     ', data.choices[0].message.content)
console.log('answered by', response.headers.get('x-br-provider'), 'for ₹', response.headers.get('x-br-cost-inr'))

let streamed = ''
let pieces = 0
for await (const chunk of await client.chat.completions.create({ model: MODEL, messages, stream: true })) {
  const text = chunk.choices[0]?.delta.content ?? ''
  streamed += text
  if (text !== '') pieces += 1
}
console.log('stream:   ', streamed, `(${pieces} pieces)`)

const answer = await client.responses.create({ model: MODEL, input: 'Say hello to the crew.' })
console.log('responses:', answer.output_text)
