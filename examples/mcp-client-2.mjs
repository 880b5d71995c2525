// An MCP client with version 2 of the SDK (@modelcontextprotocol/client). It receives a notification when shared memory changes.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { connectAgent } from 'brigade-gateway/agents'

const { BRIGADE = 'http://127.0.0.1:8787', BRIGADE_KEY } = process.env
if (!BRIGADE_KEY) {
  console.error('Set BRIGADE_KEY to an API key of the gateway; its first start has printed one.')
  process.exit(2)
}

const agentNamed = name => connectAgent({ baseUrl: BRIGADE, agent: name, credential: BRIGADE_KEY, create: true })

// With "auto" the client asks for the server's protocol versions, and uses the older protocol when the server knows no newer one.
const client = new Client({ name: 'example', version: '1' }, { versionNegotiation: { mode: 'auto' } })
await client.connect(new StreamableHTTPClientTransport(...agentNamed('example-listener').mcp()))
console.log('era:', client.getProtocolEra())

const uri = 'memory://agents/example-news/plan.md'
const news = new Promise(resolve => client.setNotificationHandler('notifications/resources/updated', ({ params }) => resolve(params)))
const subscription = await client.listen({ resourceSubscriptions: [uri] })
console.log('listens to', subscription.honoredFilter.resourceSubscriptions.join(', '))

// Another agent writes.
await agentNamed('example-planner').memory.write('agents/example-news/plan.md', 'We sail on Monday.')

const [change] = (await news)._meta['brigade/changes']
console.log('news:', change.action, change.key, 'by agent', change.author.agent)
const { contents } = await client.readResource({ uri })
console.log('reads:', contents[0].text)

await subscription.close()
await client.close()
