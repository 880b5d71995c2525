// An agent creates child agents. Each child has a part of the parent's budget and fewer rights. When the parent is revoked, its children are revoked too.
import { BrigadeError, connectAgent, gatewayClient } from 'brigade-gateway/agents'
import OpenAI from 'openai'

const { BRIGADE = 'http://127.0.0.1:8787', BRIGADE_KEY, MODEL = 'sandbox-chat' } = process.env
if (!BRIGADE_KEY) {
  console.error('Set BRIGADE_KEY to an API key of the gateway; its first start has printed one.')
  process.exit(2)
}

const owner = gatewayClient({ baseUrl: BRIGADE, credential: BRIGADE_KEY })
const { id } = await owner.json('POST', '/v1/me/agents', { json: { name: 'example-lead', may_delegate: true } })
await owner.json('POST', `/v1/me/agents/${id}/budget`, { json: { monthly_budget_inr: 100 } })

const lead = connectAgent({ baseUrl: BRIGADE, agent: id, credential: BRIGADE_KEY })

/** Creates a child with the token of the lead agent, which needs no API key. If the name exists, the existing child gets a new token. */
async function childOf(name, params) {
  const made = await lead.gateway.json('POST', `/v1/me/agents/${id}/children`, { json: { name, ...params } })
  return connectAgent({ baseUrl: BRIGADE, credential: made.access_token })
}

const worker = await childOf('example-worker', { monthly_budget_inr: 40, scope: 'inference memory:read' })
const client = new OpenAI(worker.openai())
const chat = await client.chat.completions.create({ model: MODEL, messages: [{ role: 'user', content: 'Say hello to the crew.' }] })
console.log('the worker:', chat.choices[0].message.content)

const refusals = [
  () => worker.memory.write('agents/example-worker/notes.md', 'It has no right to write.'),
  () => childOf('example-greedy', { monthly_budget_inr: 80 }),
]
for (const attempt of refusals) {
  const error = await attempt().catch(error => error)
  if (!(error instanceof BrigadeError)) throw error
  console.log('refused:', error.status, error.code, error.message)
}

// One call revokes the lead agent and all agents below it.
await owner.json('POST', `/v1/me/agents/${id}/revoke`)
const { code } = await worker.whoami().catch(error => error)
console.log('the worker after the end of the lead:', code)
