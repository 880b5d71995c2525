import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText, stepCountIs, type ToolSet } from 'ai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { aiSdkMemoryTools } from '../../../src/agents/toolkit/ai-sdk-memory.ts'
import { connectAgent } from '../../../src/agents/toolkit/connect-agent.ts'
import { memoryClient } from '../../../src/agents/toolkit/memory-client.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { toolCallReply } from './setup.ts'

let app: TestApp

beforeAll(async () => {
  app = await startApp()
  await app.call('PUT', '/v1/me/memory-store', { store: 'folder' })
})
afterAll(() => app.stop())

test('the AI SDK runs memory tools as an agent: write, refused overwrite, read, replace, search, list', async () => {
  const agent = connectAgent({ baseUrl: app.baseUrl, credential: app.key, agent: 'vercel', create: true })
  const owner = memoryClient({ baseUrl: app.baseUrl, credential: app.key })
  const { etag } = await owner.write('agents/plan.md', 'ship on monday')
  const calls: [string, object][] = [
    ['memory_paths', {}],
    ['memory_write', { key: 'agents/plan.md', content: 'mine' }],
    ['memory_read', { key: 'agents/plan.md' }],
    ['memory_write', { key: 'agents/plan.md', content: 'ship on friday', etag }],
    ['memory_search', { query: 'FRIDAY', prefix: null }],
    ['memory_list', { prefix: 'agents/' }],
    ['memory_read', { key: 'agents/nothing.md' }],
    ['memory_read', {}],
    ['memory_append', { path: 'agents/log', content: 'done' }],
  ]
  app.alpha.script([...calls.map(([name, input], at) => toolCallReply(name, input, at)), {}])
  const tools: ToolSet = aiSdkMemoryTools({ memory: agent.memory })
  const { text } = await generateText({ model: createOpenAICompatible(agent.aiSdk())('alpha-only'), prompt: 'Plan.', tools, stopWhen: stepCountIs(20) })
  expect(text).toBe('Hello from the test upstream')
  const turns = app.alpha.requests.at(-1)?.json?.['messages'] as { role: string; content: string }[]
  const replies = turns.filter(turn => turn.role === 'tool').map(turn => turn.content)
  expect(replies).toHaveLength(calls.length)
  expect(replies[0]).toContain(`users/${app.userId}/`)
  expect(replies[1]).toMatch(/changed since|already|conflict/i)
  expect(JSON.parse(replies[2] ?? '')).toMatchObject({ content: 'ship on monday', etag, written_by: String(app.userId), truncated: false })
  expect(JSON.parse(replies[3] ?? '')).toMatchObject({ ok: true, key: 'agents/plan.md' })
  expect(JSON.parse(replies[4] ?? '')).toMatchObject({ matches: [{ key: 'agents/plan.md', line: 1 }] })
  expect(JSON.parse(replies[5] ?? '')).toMatchObject({ keys: [{ key: 'agents/plan.md' }], prefixes: [] })
  expect(JSON.parse(replies[6] ?? '')).toEqual({ found: false })
  expect(replies[7]).toMatch(/key/)
  expect(JSON.parse(replies[8] ?? '').key).toMatch(/^agents\/log\//)
  expect(await owner.read('agents/plan.md')).toMatchObject({ text: 'ship on friday', provenance: { agentName: 'vercel' } })
  const sent = app.alpha.requests[0]?.json?.['tools'] as { function: { name: string; parameters: object } }[]
  expect(sent.map(tool => tool.function.name)).toEqual(Object.keys(tools))
  expect(sent.at(-1)?.function.parameters).toMatchObject({ type: 'object', required: ['path', 'content'], additionalProperties: false })
})
