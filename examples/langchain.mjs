// Uses LangChain as an agent: a chain with a prompt, a stream, and a model that calls a tool.
import { HumanMessage, ToolMessage } from '@langchain/core/messages'
import { StringOutputParser } from '@langchain/core/output_parsers'
import { ChatPromptTemplate } from '@langchain/core/prompts'
import { tool } from '@langchain/core/tools'
import { ChatOpenAI } from '@langchain/openai'
import { connectAgent } from 'brigade-gateway/agents'
import { z } from 'zod'

const { BRIGADE = 'http://127.0.0.1:8787', BRIGADE_KEY, MODEL = 'sandbox-chat' } = process.env
if (!BRIGADE_KEY) {
  console.error('Set BRIGADE_KEY to an API key of the gateway; its first start has printed one.')
  process.exit(2)
}

const agent = connectAgent({ baseUrl: BRIGADE, agent: 'example-langchain', credential: BRIGADE_KEY, create: true })
const model = new ChatOpenAI({ model: MODEL, ...agent.langchain() })

const chain = ChatPromptTemplate.fromTemplate('Say hello to {who}.').pipe(model).pipe(new StringOutputParser())
console.log('chain: ', await chain.invoke({ who: 'the crew' }))

let pieces = 0
for await (const _piece of await chain.stream({ who: 'the captain' })) pieces += 1
console.log('stream:', pieces, 'pieces')

const remember = tool(async ({ note }) => `Kept as ${(await agent.memory.append('agents/example-langchain/log', note)).key}`, {
  name: 'remember',
  description: 'Keeps a note for all agents.',
  schema: z.object({ note: z.string() }),
})
// When a prompt begins with "call", the sandbox model calls that tool. A real model also understands the prompt.
const question = new HumanMessage('call remember {"note":"The lamp needs oil."}')
const withTools = model.bindTools([remember])
const asked = await withTools.invoke([question])
const results = []
for (const call of asked.tool_calls) {
  const content = await remember.invoke(call.args)
  console.log('tool:  ', content)
  results.push(new ToolMessage({ content, tool_call_id: call.id }))
}
console.log('answer:', (await withTools.invoke([question, asked, ...results])).text)
