// Two agents share one object of memory. The reader sees who wrote it, and neither agent overwrites a version that it has not read.
import { BrigadeError, connectAgent } from 'brigade-gateway/agents'

const { BRIGADE = 'http://127.0.0.1:8787', BRIGADE_KEY } = process.env
if (!BRIGADE_KEY) {
  console.error('Set BRIGADE_KEY to an API key of the gateway; its first start has printed one.')
  process.exit(2)
}

const agentNamed = name => connectAgent({ baseUrl: BRIGADE, agent: name, credential: BRIGADE_KEY, create: true })
const [writer, reader] = [agentNamed('example-one'), agentNamed('example-two')]
const key = 'agents/example-shared/plan.md'

await writer.memory.write(key, 'Sail on Monday.\n')
const seen = await reader.memory.read(key)
console.log('the reader sees', JSON.stringify(seen.text), 'by', seen.provenance.agentName, 'at', seen.provenance.at)

// Compare and swap: the reader writes only if the object has not changed since it read it. Here the writer has changed it.
await writer.memory.write(key, 'Sail on Tuesday.\n')
try {
  await reader.memory.write(key, 'Sail never.\n', { ifMatch: seen.etag })
} catch (error) {
  if (!(error instanceof BrigadeError) || error.code !== 'memory_conflict') throw error
  console.log('refused:', error.code)
}

// `edit` does all of this: it reads, changes and writes, and starts again after a conflict. So two concurrent edits are both kept.
await Promise.all([
  writer.memory.edit(key, now => `${now.text}The writer has packed.\n`),
  reader.memory.edit(key, now => `${now.text}The reader has packed.\n`),
])
console.log(JSON.stringify((await reader.memory.read(key)).text))

// The same read without the memory client. Any HTTP client with a token can make this request. `fetch` of the agent adds the token.
const reply = await reader.fetch(`/v1/me/memory/o?key=${encodeURIComponent(key)}`)
console.log(reply.status, 'etag', reply.headers.get('etag'), 'agent', reply.headers.get('x-br-meta-agent'))

const { versions } = await reader.memory.historyPage(key, { limit: 4 })
for (const version of versions) console.log(version.modified, version.how, 'by agent', version.author.agent)
