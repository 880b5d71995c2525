// Two LangGraph graphs, each with its own agent, share one store. The writer reads what the researcher stored.
import { MessagesAnnotation, StateGraph } from '@langchain/langgraph'
import { ChatOpenAI } from '@langchain/openai'
import { brigadeStore, connectAgent } from 'brigade-gateway/agents'

const { BRIGADE = 'http://127.0.0.1:8787', BRIGADE_KEY, MODEL = 'sandbox-chat' } = process.env
if (!BRIGADE_KEY) {
  console.error('Set BRIGADE_KEY to an API key of the gateway; its first start has printed one.')
  process.exit(2)
}

// Graphs with the same root share their items. They can run on different machines and in any number of threads.
const root = 'agents/example-langgraph/'

function graphOf(agent, work) {
  const model = new ChatOpenAI({ model: MODEL, ...agent.langchain() })
  return new StateGraph(MessagesAnnotation)
    .addNode('work', (state, config) => work(model, state.messages, config.store))
    .addEdge('__start__', 'work')
    .addEdge('work', '__end__')
    .compile({ store: brigadeStore({ memory: agent.memory, root }) })
}
const agentNamed = name => connectAgent({ baseUrl: BRIGADE, agent: name, credential: BRIGADE_KEY, create: true })

const researcher = agentNamed('example-researcher')
const research = graphOf(researcher, async (model, messages, store) => {
  const answer = await model.invoke(messages)
  await store.put(['facts', 'tides'], 'monday', { text: answer.text, height: 4 })
  return { messages: [answer] }
})

const write = graphOf(agentNamed('example-writer'), async (model, messages, store) => {
  const facts = await store.search(['facts'], { filter: { height: { $gte: 3 } } })
  console.log('the writer found', facts.map(fact => `${fact.namespace.join('/')}/${fact.key}`).join(', '))
  return { messages: [await model.invoke([...messages, ...facts.map(fact => ({ role: 'user', content: fact.value.text }))])] }
})

await research.invoke({ messages: [{ role: 'user', content: 'How high is the tide on Monday?' }] })
const { messages } = await write.invoke({ messages: [{ role: 'user', content: 'Write a line about the tides.' }] })
console.log('the writer wrote:', messages.at(-1).text)

// Each item is an object of shared memory.
const { text, provenance } = await researcher.memory.read(`${root}facts/tides/monday.json`)
console.log('in memory it is', JSON.stringify(JSON.parse(text).value.height), 'metres by', provenance.agentName)
