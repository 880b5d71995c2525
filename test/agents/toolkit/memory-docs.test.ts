/** What the page about the toolkit says of memory, compiled and run as it stands by a project that has the package. */
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { type Consumer, makeConsumer } from './consumer.ts'

const page = readFileSync(new URL('../../../docs/toolkit.md', import.meta.url), 'utf8')
const programsIn = (text: string): string[] => [...text.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, program = '']) => program)
const section = /\n## Memory\n[\s\S]*?(?=\n## )/.exec(page)?.[0] ?? ''
/** `agent.ts`, and the programs of the section. */
const programs = [...programsIn(page).slice(0, 1), ...programsIn(section)]
const nameOf = (index: number): string => (index === 0 ? 'agent' : `memory-${index}`)

let app: TestApp
let consumer: Consumer
beforeAll(async () => {
  app = await startApp({ env: { SANDBOX: 'on' } })
  await app.call('PUT', '/v1/me/memory-store', { store: 'folder' })
  await app.call('POST', '/v1/me/agents', { name: 'triage' })
  consumer = makeConsumer()
})
afterAll(async () => {
  consumer?.remove()
  await app?.stop()
})

test('the programs about memory fit the types of the frameworks, and run to their end', async () => {
  expect(programs).toHaveLength(5)
  programs.forEach((text, index) => {
    consumer.write(`${nameOf(index)}.ts`, text)
    consumer.write(`${nameOf(index)}.js`, text.replaceAll('https://gateway.example.com', app.baseUrl))
  })
  const files = programs.map((_, index) => `${nameOf(index)}.ts`)
  expect(consumer.typeErrors(files, { module: 'nodenext', types: ['node'] })).toBe('')
  consumer.write('all.js', programs.map((_, index) => `console.log('-- ${index}')\nawait import('./${nameOf(index)}.js')`).join('\n'))
  const [, client = '', claude = '', graph = '', ai = ''] = (await consumer.run('all.js', { BRIGADE_KEY: app.key })).split(/^-- .*\n/m).slice(1)
  expect(client).toContain('The build is green.\nDeployed 4.2.\n triage')
  expect(client).toContain('agents/triage/notes.md 2 Deployed 4.2.')
  expect(claude).toContain("type: 'text'")
  expect(graph).toContain("name: 'Kannada'")
  expect(ai.trim()).not.toBe('')
  expect((await app.call('GET', '/v1/me/memory/list?prefix=agents/support/')).json.keys).toMatchObject([{ key: 'agents/support/users/7/language.json' }])
})

test('the types hold in a browser that checks libraries', () => {
  consumer.write(
    'browser.ts',
    `import { aiSdkMemoryTools, brigadeMemoryTool, brigadeStore, memoryClient } from 'brigade-gateway/agents'
const memory = memoryClient({ baseUrl: location.origin, credential: 'token' })
export const all = [aiSdkMemoryTools({ memory }), brigadeMemoryTool({ memory }, { cache_control: { type: 'ephemeral' } }), brigadeStore({ memory, root: 'agents/x' })]
// @ts-expect-error Who reads the items is for the caller to say.
brigadeStore({ memory })
`,
  )
  const options = { module: 'esnext', moduleResolution: 'bundler', types: [], lib: ['es2023', 'dom', 'dom.iterable', 'dom.asynciterable'] }
  expect(consumer.typeErrors(['browser.ts'], { ...options, skipLibCheck: false, exactOptionalPropertyTypes: true })).toBe('')
})
