/** Models that use memory: the tool runner of Anthropic's SDK, the AI SDK, a scripted provider, and memory that agents share. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import Anthropic from '@anthropic-ai/sdk'
import { betaMemoryTool } from '@anthropic-ai/sdk/helpers/beta/memory'
import { generateText, stepCountIs, type ToolSet } from 'ai'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { aiSdkMemoryTools } from '../../../src/agents/toolkit/adapters/ai-sdk-memory.ts'
import { brigadeStore } from '../../../src/agents/toolkit/adapters/langgraph-store.ts'
import { connectAgent } from '../../../src/agents/toolkit/connect-agent.ts'
import { type MemoryClient, memoryClient } from '../../../src/agents/toolkit/memory-client/memory-client.ts'
import { brigadeMemoryFunction, brigadeMemoryTool, memoryToolHandlers } from '../../../src/agents/toolkit/memory-tool/memory-tool.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { toolCallReply } from './setup.ts'

let app: TestApp
let owner: MemoryClient

beforeAll(async () => {
  app = await startApp({ dialects: true })
  await app.call('PUT', '/v1/me/memory-store', { store: 'folder' })
  owner = memoryClient({ baseUrl: app.baseUrl, credential: app.key })
})
afterAll(() => app.stop())
beforeEach(() => {
  app.alpha.reset()
  app.others.claude.reset()
})

const agentNamed = (agent: string) => connectAgent({ baseUrl: app.baseUrl, credential: app.key, agent, create: true })
const request = { max_tokens: 200, messages: [{ role: 'user' as const, content: 'Remember that the build is green.' }], thread: false as const }

const plan = [
  { command: 'view', path: '/memories' },
  { command: 'create', path: '/memories/notes.md', file_text: 'build: red\n' },
  { command: 'create', path: '/memories/notes.md', file_text: 'again' },
  { command: 'str_replace', path: '/memories/notes.md', old_str: 'red', new_str: 'green' },
]
const results = [
  "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items and node_modules:\n4K\t/memories",
  'File created successfully at: /memories/notes.md',
  'Error: File /memories/notes.md already exists',
  'The memory file has been edited. Here is the snippet showing the change (with line numbers):\n     1\tbuild: green\n     2\t',
]

test('TOOL-04 memory_20250818 works in the tool runner of the SDK, over the gateway, as an agent', async () => {
  const agent = agentNamed('claude')
  app.others.claude.script([
    ...plan.map((input, at) => ({
      body: {
        id: `m${at}`,
        type: 'message',
        role: 'assistant',
        model: 'x',
        stop_reason: 'tool_use',
        stop_sequence: null,
        usage: { input_tokens: 1, output_tokens: 1 },
        content: [{ type: 'tool_use', id: `t${at}`, name: 'memory', input }],
      },
    })),
    {},
  ])
  const tool = brigadeMemoryTool({ memory: agent.memory, root: 'agents/claude' }, { cache_control: { type: 'ephemeral' } as const })
  const message = await new Anthropic(agent.anthropic()).beta.messages.toolRunner({ ...request, model: 'anthropic-model', tools: [tool] })
  expect(message.content).toMatchObject([{ type: 'text', text: 'Hello from the test upstream' }])
  const last = app.others.claude.requests.at(-1)?.json ?? {}
  expect(last['tools']).toEqual([{ type: 'memory_20250818', name: 'memory', cache_control: { type: 'ephemeral' } }])
  expect(
    (last['messages'] as { role: string; content: { content: string }[] }[])
      .filter((turn, at) => at > 0 && turn.role === 'user')
      .map(turn => turn.content[0]?.content),
  ).toEqual(results)
  const written = await owner.read('agents/claude/notes.md')
  expect(written).toMatchObject({ text: 'build: green\n', provenance: { agentName: 'claude' } })
})

test('the same commands work as a function, with a model of another provider', async () => {
  const agent = agentNamed('other')
  app.alpha.script([...plan.map((input, at) => toolCallReply('memory', input, at)), {}])
  const tool = brigadeMemoryFunction({ memory: agent.memory, root: 'agents/other' })
  await new Anthropic(agent.anthropic()).beta.messages.toolRunner({ ...request, model: 'alpha-only', tools: [tool] })
  const turns = app.alpha.requests.at(-1)?.json?.['messages'] as { role: string; content: string }[]
  // The format of that provider cannot mark a call as failed, so the gateway writes "Error" in the text.
  expect(turns.filter(turn => turn.role === 'tool').map(turn => turn.content)).toEqual(results.map(text => text.replace(/^Error/, 'Error: Error')))
  expect((await owner.read('agents/other/notes.md'))?.text).toBe('build: green\n')
})

test('the handlers fit betaMemoryTool of the SDK, and invalid input of a model gets an explanation', async () => {
  const options = { memory: owner, root: 'agents/handlers' }
  const theirs = betaMemoryTool(memoryToolHandlers(options))
  expect(await theirs.run({ command: 'create', path: '/memories/a', file_text: 'x' })).toBe('File created successfully at: /memories/a')
  const { parse, run } = brigadeMemoryTool(options)
  const call = async (input: unknown) => run(parse(input))
  await expect(call({ command: 'forget', path: '/memories' })).rejects.toThrow('forget not implemented')
  await expect(call({ command: 'view' })).rejects.toThrow('`path` must be given, as text.')
  await expect(call(null)).rejects.toThrow('undefined not implemented')
  await expect(call({ command: 'insert', path: '/memories/a', insert_line: 'end', insert_text: '' })).rejects.toThrow(
    '`insert_line` must be given, as a number.',
  )
  expect(await call({ command: 'insert', path: '/memories/a', insert_line: '1', insert_text: 'y' })).toBe('The file /memories/a has been edited.')
  expect(await call({ command: 'str_replace', path: '/memories/a', old_str: 'x' })).toContain('     1\t\n     2\ty')
  await expect(call({ command: 'create', path: '/memories/a\\b', file_text: '' })).rejects.toThrow(/backslash/)
})

test('without a root, the tool shows all memory that the credential can use: its own memory, shares, agents and records', async () => {
  await owner.shares.create('launch')
  await owner.promote('policy.md', 'We test.')
  const agent = agentNamed('mounted')
  const memory = memoryToolHandlers({ memory: agent.memory })
  await memory.create({ path: '/memories/me/diary.md', file_text: 'private' })
  await memory.create({ path: '/memories/shared/launch/plan/one.md', file_text: 'ship' })
  expect(
    (await memory.view({ path: '/memories' }))
      .split('\n')
      .slice(1)
      .map(line => line.split('\t')[1]),
  ).toEqual(
    expect.arrayContaining([
      '/memories',
      '/memories/agents/',
      '/memories/me/',
      '/memories/me/diary.md',
      '/memories/records/',
      '/memories/records/org/',
      '/memories/shared/',
      '/memories/shared/launch/',
    ]),
  )
  expect(await memory.view({ path: '/memories/shared' })).toContain('launch/plan/')
  expect(await memory.view({ path: '/memories/records/org/policy.md' })).toContain('We test.')
  expect((await owner.read(`users/${app.userId}/diary.md`))?.text).toBe('private')
  // A rename between mounts moves a file to a place with other readers.
  await memory.rename({ old_path: '/memories/me/diary.md', new_path: '/memories/shared/launch/diary.md' })
  expect(await owner.read(`users/${app.userId}/diary.md`)).toBeNull()
  expect((await owner.read('shared/launch/diary.md'))?.text).toBe('private')
  for (const [run, message] of [
    [() => memory.create({ path: '/memories/loose.md', file_text: '' }), /Files are in: .*\/memories\/me/],
    [() => memory.create({ path: '/memories/shared/x', file_text: '' }), /Files are in/],
    [() => memory.view({ path: '/memories/loose.md' }), /does not exist/],
    [() => memory.delete({ path: '/memories/me' }), /Cannot delete \/memories\/me itself/],
    [() => memory.rename({ old_path: '/memories/shared', new_path: '/memories/me/s' }), /Cannot rename/],
    [() => memory.create({ path: '/memories/records/org/mine.md', file_text: '' }), /record|promot|write/i],
    [() => memory.str_replace({ path: '/memories/records/org/policy.md', old_str: 'We', new_str: 'They' }), /record|promot|write/i],
    [() => memory.rename({ old_path: '/memories/records/org/policy.md', new_path: '/memories/me/p.md' }), /record|promot|write|delete/i],
  ] as const)
    await expect(run()).rejects.toThrow(message)
  // A record cannot be moved, so no copy of it is left either.
  expect(await owner.read(`users/${app.userId}/p.md`)).toBeNull()
})

test('the prefix of a root or mount may have slashes at its ends, and an invalid prefix is refused immediately. A file and a folder of one name are both shown', async () => {
  await owner.write('agents/both/a', 'file')
  await owner.write('agents/both/a/b', 'in the folder')
  const memory = memoryToolHandlers({ memory: owner, mounts: { '/memories/x/': '/agents/both/' } })
  expect((await memory.view({ path: '/memories/x' })).split('\n').slice(1)).toEqual([
    '4K\t/memories/x',
    '4B\t/memories/x/a',
    '4K\t/memories/x/a/',
    '13B\t/memories/x/a/b',
  ])
  expect(await memory.view({ path: '/memories/x/a' })).toContain('\tfile')
  expect(await memory.view({ path: '/memories/x/a/b' })).toContain('in the folder')
  await memory.rename({ old_path: '/memories/x/a', new_path: '/memories/x/c' })
  expect((await owner.listPage('agents/both/')).keys.map(found => found.key)).toEqual(['agents/both/c', 'agents/both/c/b'])
  await memory.delete({ path: '/memories/x/c' })
  expect((await owner.listPage('agents/both/')).keys).toEqual([])
  for (const root of ['', '/']) {
    expect(() => memoryToolHandlers({ memory: owner, root })).toThrow(TypeError)
    expect(() => brigadeStore({ memory: owner, root })).toThrow(TypeError)
  }
})

test('agents that edit one file concurrently lose no change, even during a rename', async () => {
  const tools = ['editor one', 'editor two'].map(name => memoryToolHandlers({ memory: agentNamed(name).memory, root: 'agents/together' }))
  const [one, two] = tools
  if (one === undefined || two === undefined) throw new Error('two tools')
  await one.create({ path: '/memories/log.md', file_text: 'start' })
  const lines = Array.from({ length: 8 }, (_, at) => `line ${at}`)
  await Promise.all(lines.map((text, at) => (at % 2 === 0 ? one : two).insert({ path: '/memories/log.md', insert_line: 0, insert_text: text })))
  expect((await owner.read('agents/together/log.md'))?.text.split('\n').sort()).toEqual([...lines, 'start'].sort())
  await Promise.allSettled([
    one.rename({ old_path: '/memories/log.md', new_path: '/memories/moved/log.md' }),
    ...lines.map(text => two.insert({ path: '/memories/log.md', insert_line: 0, insert_text: `late ${text}` })),
  ]).then(async outcomes => {
    const done = outcomes.slice(1).flatMap((outcome, at) => (outcome.status === 'fulfilled' ? [`late ${lines[at]}`] : []))
    const after = await owner.read('agents/together/moved/log.md')
    expect(after?.text.split('\n').sort()).toEqual([...lines, 'start', ...done].sort())
    expect(await owner.read('agents/together/log.md')).toBeNull()
  })
  // When two agents create one file concurrently, exactly one of them succeeds.
  const created = await Promise.allSettled(tools.map(tool => tool.create({ path: '/memories/new.md', file_text: 'x' })))
  expect(created.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
})

test('a move whose outcome is unknown loses nothing, because the copy stays', async () => {
  await owner.write('agents/moves/a', 'all there is')
  // The gateway deletes the object, but its reply is lost.
  const losing: typeof fetch = async (input, init) => {
    const reply = await fetch(input, init)
    if (init?.method === 'DELETE') throw new TypeError('fetch failed')
    return reply
  }
  const memory = memoryToolHandlers({ memory: memoryClient({ baseUrl: app.baseUrl, credential: app.key, fetch: losing }), root: 'agents/moves' })
  await expect(memory.rename({ old_path: '/memories/a', new_path: '/memories/b' })).rejects.toThrow('fetch failed')
  expect([await owner.read('agents/moves/a'), (await owner.read('agents/moves/b'))?.text]).toEqual([null, 'all there is'])
})

test('no path can leave its mount, however it is spelled', async () => {
  await owner.write('agents/inside/a', 'mine')
  await owner.write('agents/outside', 'theirs')
  const memory = memoryToolHandlers({ memory: owner, mounts: { 'caf\u00e9': 'agents/inside/caf\u00e9', in: 'agents/inside/' } })
  const dots = ['..', '%2e%2e', '\uff0e\uff0e', '\u2025', '..;', '.%00.', '..\\', '\u2024\u2024']
  for (const up of dots)
    for (const path of [
      `/memories/in/${up}/outside`,
      `/memories/${up}/${up}/outside`,
      `/memories/in/x/${up}/${up}/${up}/outside`,
      `/memories/in/${up}\uff0foutside`,
    ]) {
      const runs = [
        memory.view({ path }),
        memory.delete({ path }),
        memory.insert({ path, insert_line: 0, insert_text: 'x' }),
        memory.rename({ old_path: path, new_path: '/memories/in/taken' }),
      ]
      expect(
        (await Promise.allSettled(runs)).map(({ status }) => status),
        path,
      ).toEqual(Array(4).fill('rejected'))
    }
  for (const path of ['/etc/passwd', 'memories/in/a', '/memories/../in/a', 'agents/inside/a'])
    await expect(memory.view({ path })).rejects.toThrow(/must start with|would escape/)
  expect((await owner.read('agents/outside'))?.text).toBe('theirs')
  // The same name in another Unicode normal form means the same folder and the same mount.
  await memory.create({ path: '/memories/cafe\u0301/re\u0301sume\u0301', file_text: 'one' })
  expect(await memory.view({ path: '/memories/caf\u00e9/r\u00e9sum\u00e9' })).toContain('\tone')
  await memory.delete({ path: '/memories/caf\u00e9/r\u00e9sum\u00e9' })
  expect((await memory.view({ path: '/memories' })).normalize('NFC').match(/caf\u00e9\//g)).toHaveLength(1)
})

test('the tool does not change files whose bytes are not text', async () => {
  const bytes = Uint8Array.from([0x61, 0xff, 0x0a, 0x62])
  await owner.write('agents/binary/x', bytes)
  const memory = memoryToolHandlers({ memory: owner, root: 'agents/binary' })
  await expect(memory.str_replace({ path: '/memories/x', old_str: 'b', new_str: 'c' })).rejects.toThrow('/memories/x is not text in UTF-8')
  await expect(memory.insert({ path: '/memories/x', insert_line: 0, insert_text: 'c' })).rejects.toThrow('Nothing was changed')
  await memory.rename({ old_path: '/memories/x', new_path: '/memories/y' })
  expect((await owner.read('agents/binary/y'))?.bytes).toEqual(bytes)
})

test('with the AI SDK, memory tools run as an agent: write, refused overwrite, read, replace, search, list', async () => {
  const agent = agentNamed('vercel')
  const { etag } = await owner.write('agents/vercel/plan.md', 'ship on monday')
  const calls: [string, object][] = [
    ['memory_paths', {}],
    ['memory_write', { key: 'agents/vercel/plan.md', content: 'mine' }],
    ['memory_read', { key: 'agents/vercel/plan.md' }],
    ['memory_write', { key: 'agents/vercel/plan.md', content: 'ship on friday', etag }],
    ['memory_search', { query: 'FRIDAY', prefix: null }],
    ['memory_list', { prefix: 'agents/vercel/' }],
    ['memory_read', { key: 'agents/vercel/nothing.md' }],
    ['memory_read', {}],
    ['memory_append', { path: 'agents/vercel/log', content: 'done' }],
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
  expect(JSON.parse(replies[3] ?? '')).toMatchObject({ ok: true, key: 'agents/vercel/plan.md' })
  expect(JSON.parse(replies[4] ?? '')).toMatchObject({ matches: [{ key: 'agents/vercel/plan.md', line: 1 }] })
  expect(JSON.parse(replies[5] ?? '')).toMatchObject({ keys: [{ key: 'agents/vercel/plan.md' }], prefixes: [] })
  expect(JSON.parse(replies[6] ?? '')).toEqual({ found: false })
  expect(replies[7]).toMatch(/key/)
  expect(JSON.parse(replies[8] ?? '').key).toMatch(/^agents\/vercel\/log\//)
  expect(await owner.read('agents/vercel/plan.md')).toMatchObject({ text: 'ship on friday', provenance: { agentName: 'vercel' } })
  const sent = app.alpha.requests[0]?.json?.['tools'] as { function: { name: string; parameters: object } }[]
  expect(sent.map(tool => tool.function.name)).toEqual(Object.keys(tools))
  expect(sent.at(-1)?.function.parameters).toMatchObject({ type: 'object', required: ['path', 'content'], additionalProperties: false })
})
