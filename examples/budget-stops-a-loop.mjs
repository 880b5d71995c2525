// Runs an agent in a loop until a small budget stops it.
import { connectAgent, gatewayClient } from 'brigade-gateway/agents'
import OpenAI from 'openai'

const { BRIGADE = 'http://127.0.0.1:8787', BRIGADE_KEY, MODEL = 'sandbox-chat' } = process.env
if (!BRIGADE_KEY) {
  console.error('Set BRIGADE_KEY to an API key of the gateway; its first start has printed one.')
  process.exit(2)
}

// The key creates agents and sets their budgets. An agent cannot set its own budget. If the name exists, the call returns the existing agent.
const owner = gatewayClient({ baseUrl: BRIGADE, credential: BRIGADE_KEY })
const { id, spend_month_inr } = await owner.json('POST', '/v1/me/agents', { json: { name: 'example-loop' } })
// A budget is for the whole month. Set it to one paisa more than the agent has already spent this month.
await owner.json('POST', `/v1/me/agents/${id}/budget`, { json: { monthly_budget_inr: spend_month_inr + 0.01 } })

const agent = connectAgent({ baseUrl: BRIGADE, agent: id, credential: BRIGADE_KEY })
const client = new OpenAI(agent.openai())
const messages = [{ role: 'user', content: 'Say hello to the crew.' }]
// The loop ends after 200 turns, because a budget never stops calls of a model that costs nothing, such as one on your own machine.
for (let turn = 1; turn <= 200; turn++) {
  try {
    await client.chat.completions.create({ model: MODEL, messages })
    console.log('turn', turn, 'is done')
  } catch (error) {
    // The SDK does not retry this error, because the budget is used up until the month ends.
    if (error.code !== 'agent_budget_exceeded') throw error
    console.log('stopped:', error.status, error.code)
    console.log(error.message)
    break
  }
}
for (const budget of await agent.budget()) console.log(`${budget.scope}: ₹${budget.spent_inr} of ₹${budget.cap_inr}, until ${budget.resets_at}`)
