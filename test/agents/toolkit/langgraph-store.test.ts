import { Annotation, type BaseStore, type LangGraphRunnableConfig, MemorySaver, StateGraph } from '@langchain/langgraph'
import { InMemoryStore as ReferenceStore } from '@langchain/langgraph-checkpoint'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { brigadeStore } from '../../../src/agents/toolkit/adapters/langgraph-store.ts'
import { itemOfKey, keyOfItem } from '../../../src/agents/toolkit/adapters/langgraph-store-keys.ts'
import { type MemoryClient, memoryClient } from '../../../src/agents/toolkit/memory-client/memory-client.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { propertyRuns } from '../../harness/property-runs.ts'

let app: TestApp
let memory: MemoryClient
let roots = 0

beforeAll(async () => {
  app = await startApp()
  await app.call('PUT', '/v1/me/memory-store', { store: 'folder' })
  memory = memoryClient({ baseUrl: app.baseUrl, credential: app.key })
})
afterAll(() => app.stop())

const newRoot = (): string => `agents/graph-${++roots}`
const agentMemory = async (name: string): Promise<MemoryClient> => memoryClient({ baseUrl: app.baseUrl, credential: (await app.newAgent(name)).token })

describe('compared with the store of LangGraph', () => {
  const label = fc.constantFrom('a', 'b', 'user 1', 'ನಾ', 'x/y', '%2F')
  const namespace = fc.array(label, { minLength: 1, maxLength: 3 })
  const bad = fc.constantFrom<string[]>([], [''], ['a.b'], ['a:b'], ['langgraph', 'x'])
  const key = fc.constantFrom('k', 'k2', 'a.json', '..', '', 'q?&=/#')
  const value = fc.record(
    { n: fc.oneof(fc.integer({ min: 0, max: 5 }), fc.constantFrom('3', null, true)), tag: fc.constantFrom('x', 'y'), deep: fc.jsonValue() },
    { requiredKeys: [] },
  )
  const operand = fc.oneof(fc.integer({ min: 0, max: 5 }), fc.constantFrom('3', 'x', null))
  const operators = fc.oneof(
    fc.dictionary(fc.constantFrom('$eq', '$ne', '$gt', '$gte', '$lt', '$lte'), operand, { maxKeys: 2, noNullPrototype: true }),
    fc.dictionary(fc.constantFrom('$in', '$nin'), fc.array(operand, { maxLength: 3 }), { maxKeys: 1, noNullPrototype: true }),
    fc.constantFrom({ $other: 1 }, { toString: 1 }),
  )
  const filter = fc.dictionary(fc.constantFrom('n', 'tag'), fc.oneof(operand, operators), { maxKeys: 2, noNullPrototype: true })
  type Step = (store: BaseStore) => Promise<unknown>
  const anyNamespace = fc.oneof({ weight: 9, arbitrary: namespace }, { weight: 1, arbitrary: bad })
  // The reference store lists items in the order of insertion, and this store by name. Results are compared as sets.
  const unordered = async (found: Promise<readonly { namespace: string[]; key: string; value: unknown }[]>): Promise<unknown> =>
    (await found).map(item => JSON.stringify([item.namespace, item.key, item.value])).sort()
  const list = fc.record(
    {
      prefix: fc.array(fc.oneof(label, fc.constant('*')), { minLength: 1, maxLength: 2 }),
      suffix: fc.array(label, { minLength: 1, maxLength: 2 }),
      maxDepth: fc.integer({ min: 1, max: 3 }),
      limit: fc.integer({ min: 1, max: 4 }),
      offset: fc.integer({ min: 0, max: 2 }),
    },
    { requiredKeys: [] },
  )
  const step: fc.Arbitrary<Step> = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.tuple(anyNamespace, key, value).map(
        ([at, name, item]): Step =>
          store =>
            store.put(at, name, structuredClone(item)),
      ),
    },
    {
      weight: 2,
      arbitrary: fc.tuple(anyNamespace, key).map(
        ([at, name]): Step =>
          store =>
            store.delete(at, name),
      ),
    },
    {
      weight: 2,
      arbitrary: fc.tuple(anyNamespace, key).map(
        ([at, name]): Step =>
          async store => ({ ...(await store.get(at, name)), createdAt: 0, updatedAt: 0 }),
      ),
    },
    {
      weight: 2,
      arbitrary: fc.tuple(fc.oneof(anyNamespace, fc.constant<string[]>([])), filter).map(
        ([at, wanted]): Step =>
          store =>
            unordered(store.search(at, { filter: wanted, limit: 100 })),
      ),
    },
    {
      weight: 1,
      arbitrary: fc.tuple(namespace, fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 3 })).map(
        ([at, limit, offset]): Step =>
          async store =>
            (await store.search(at, { limit, offset })).length,
      ),
    },
    {
      weight: 2,
      arbitrary: list.map(
        (options): Step =>
          store =>
            store.listNamespaces(options),
      ),
    },
    {
      weight: 1,
      arbitrary: fc.tuple(namespace, key, value, value).map(
        ([at, name, one, other]): Step =>
          async store => [
            (
              await store.batch([
                { namespace: at, key: name, value: one },
                { namespace: at, key: name },
                { namespace: at, key: name, value: other },
              ])
            )
              // Only the existence is compared. The reference store returns the stored object itself, and the later write of the same batch changes
              // it.
              .map(found => found === null),
            (await store.get(at, name))?.value,
          ],
      ),
    },
  )

  /** Returns the outcome, or the name of the thrown error. */
  const outcome = async (run: () => Promise<unknown>): Promise<unknown> => {
    try {
      return JSON.parse(JSON.stringify((await run()) ?? null))
    } catch (failure) {
      return (failure as Error).name
    }
  }
  /** The reference store keeps a namespace after its last item is deleted. This store does not, so the test removes it there. */
  const forgetEmpty = (store: ReferenceStore): void => {
    const { data } = store as unknown as { data: Map<string, Map<string, unknown>> }
    for (const [at, items] of data) if (items.size === 0) data.delete(at)
  }

  test("a store in shared memory gives the same answers as LangGraph's own store", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 25 }), async steps => {
        const theirs = new ReferenceStore()
        const ours: BaseStore = brigadeStore({ memory, root: newRoot() })
        for (const run of steps) {
          const expected = await outcome(() => run(theirs))
          forgetEmpty(theirs)
          expect(await outcome(() => run(ours))).toEqual(expected)
        }
      }),
      { numRuns: Number(process.env['LANGGRAPH_STORE_RUNS'] ?? propertyRuns(6)) },
    )
  })

  test('any text can be a label or a key, and is restored from the memory key', () => {
    const text = fc.string({ unit: 'binary', maxLength: 12 })
    fc.assert(
      fc.property(fc.array(text, { minLength: 1, maxLength: 3 }), text, (labels, name) => {
        const at = keyOfItem('agents/x', { namespace: labels, key: name })
        expect(itemOfKey('agents/x', at)).toEqual({ namespace: labels, key: name })
        expect(at.normalize('NFC')).toBe(at)
        expect(at).not.toMatch(/[\p{Cc}\p{Cf}\\]|\/\.{1,2}(\/|$)/u)
      }),
      {
        numRuns: propertyRuns(60),
        examples: [
          [['+\u0307'], 'e\u0301'],
          [['B\u0307'], '\u0307'],
          [['..', '.'], '..'],
          [['\u212b'], ''],
        ],
      },
    )
  })
})

test('an item keeps its creation time, even when two writers write it concurrently. The pages of a search show every item once', async () => {
  const root = newRoot()
  const [one, other] = [brigadeStore({ memory: await agentMemory('writer one'), root }), brigadeStore({ memory: await agentMemory('writer two'), root })]
  await one.put(['notes'], 'n', { turn: 0 })
  const first = await one.get(['notes'], 'n')
  await Promise.all([one.put(['notes'], 'n', { turn: 1 }), other.put(['notes'], 'n', { turn: 2 }), other.put(['notes', 'x'], 'm', { turn: 3 })])
  const last = await other.get(['notes'], 'n')
  expect(last?.createdAt).toEqual(first?.createdAt)
  expect([1, 2]).toContain(last?.value['turn'])
  const pages = await Promise.all([0, 1, 2].map(offset => one.search(['notes'], { limit: 1, offset })))
  expect(pages.flat().map(item => item.key)).toEqual(['n', 'm'])
  expect(await one.search(['notes'], { filter: { turn: { $gte: 3 } } })).toMatchObject([{ key: 'm', namespace: ['notes', 'x'] }])
})

test('other files in the folder are not items, so the store does not find, list or overwrite them', async () => {
  const root = newRoot()
  const store = brigadeStore({ memory, root })
  await memory.write(`${root}/notes/readme.md`, 'hello')
  await memory.write(`${root}/notes/plain.json`, '[1]')
  await memory.write(`${root}/notes/broken.json`, '{')
  expect(await store.get(['notes'], 'plain')).toBeNull()
  expect(await store.search([])).toEqual([])
  await expect(store.put(['notes'], 'broken', { a: 1 })).rejects.toThrow(/no item of this store/)
  await expect(brigadeStore({ memory, root: 'users/999999' }).put(['a'], 'b', {})).rejects.toMatchObject({ code: 'forbidden' })
})

test('no other file in the folder breaks a search, a filter or a list', async () => {
  const root = newRoot()
  const store = brigadeStore({ memory, root })
  const at = '"created_at":"2026-01-01T00:00:00.000Z","updated_at":"2026-01-01T00:00:00.000Z"'
  const foreign: Record<string, string | Uint8Array> = {
    'notes/date.json': '{"value":{"n":1},"created_at":{"toString":1,"valueOf":1},"updated_at":1}',
    'notes/number.json': `{"value":{"n":{"toString":1,"valueOf":1}},${at}}`,
    'notes/proto.json': `{"value":{"__proto__":{"n":9},"constructor":5},"__proto__":{"value":{}},${at}}`,
    'notes/deep.json': '['.repeat(100_000),
    'notes/null.json': 'null',
    'notes/bytes.json': Uint8Array.from([0xff, 0xfe, 0x00]),
    'a%3Ab/x.json': `{"value":{"n":1},${at}}`,
    'a%2Eb/x.json': `{"value":{"n":1},${at}}`,
    'loose.json': `{"value":{"n":1},${at}}`,
  }
  for (const [key, content] of Object.entries(foreign)) await memory.write(`${root}/${key}`, content)
  await store.put(['notes'], '__proto__', JSON.parse('{"n":2,"__proto__":{"n":7}}'))
  await store.put(['__proto__', 'constructor'], 'toString', { n: 3 })
  const keysOf = async (filter?: Record<string, unknown>): Promise<string[]> =>
    (await store.search([], filter === undefined ? {} : { filter })).map(({ namespace, key }) => [...namespace, key].join('/'))
  expect(await keysOf()).toEqual(['__proto__/constructor/toString', 'notes/__proto__', 'notes/number', 'notes/proto'])
  expect(await keysOf({ n: { $gt: 1 } })).toEqual(['__proto__/constructor/toString', 'notes/__proto__'])
  expect(await keysOf({ constructor: 5 })).toEqual(['notes/proto'])
  // An inherited property, such as toString, is not a field of an item.
  expect(await keysOf({ toString: { $ne: undefined } })).toEqual([])
  expect(await keysOf(JSON.parse('{"__proto__":{"$in":[null]}}'))).toEqual([])
  expect(await store.listNamespaces()).toEqual([['__proto__', 'constructor'], ['notes']])
  expect(({} as Record<string, unknown>)['n']).toBeUndefined()
})

test('a search finds more items than one page holds, and leaves out items that are deleted meanwhile', async () => {
  const keys = Array.from({ length: 7 }, (_, at) => `k${at}`)
  const root = newRoot()
  const small: MemoryClient = { ...memory, list: (prefix, options) => memory.list(prefix, { ...options, limit: 2 }) }
  const store = brigadeStore({ memory: small, root })
  await store.batch(keys.map(key => ({ namespace: ['many'], key, value: { key } })))
  expect((await store.search(['many'], { limit: 100 })).map(item => item.key)).toEqual(keys)
  expect((await store.search(['many'], { limit: 2, offset: 4 })).map(item => item.key)).toEqual(['k4', 'k5'])
  const [found] = await Promise.all([store.search(['many'], { limit: 100 }), ...keys.slice(0, 5).map(key => store.delete(['many'], key))])
  expect(found.map(item => item.key)).toEqual(expect.arrayContaining(['k5', 'k6']))
})

test('a namespace that memory cannot store is refused with an explanation', async () => {
  const store = brigadeStore({ memory, root: newRoot() })
  for (const namespace of [Array.from({ length: 30 }, () => 'x'), ['x'.repeat(2000)]]) {
    await expect(store.put(namespace, 'k', {})).rejects.toMatchObject({ code: 'bad_memory_key' })
    await expect(store.search(namespace)).rejects.toMatchObject({ code: 'bad_memory_key' })
  }
})

test('two graphs of two agents share their memory across threads', async () => {
  const root = newRoot()
  const State = Annotation.Root({ said: Annotation<string>, known: Annotation<string[]> })
  const graphOf = (store: BaseStore) =>
    new StateGraph(State)
      .addNode('remember', async ({ said }, config: LangGraphRunnableConfig) => {
        const before = (await config.store?.search(['facts'])) ?? []
        await config.store?.put(['facts', 'team'], said.replaceAll(' ', '-'), { said })
        return { known: before.map(item => String(item.value['said'])) }
      })
      .addEdge('__start__', 'remember')
      .compile({ store, checkpointer: new MemorySaver() })
  const writer = graphOf(brigadeStore({ memory: await agentMemory('graph one'), root }))
  const reader = graphOf(brigadeStore({ memory: await agentMemory('graph two'), root }))
  const run = (graph: typeof writer, thread: string, said: string) => graph.invoke({ said }, { configurable: { thread_id: thread } })
  expect((await run(writer, '1', 'the sky is blue')).known).toEqual([])
  expect((await run(writer, '2', 'the sea is deep')).known).toEqual(['the sky is blue'])
  expect((await run(reader, '1', 'the sun is far')).known).toEqual(['the sea is deep', 'the sky is blue'])
  const read = await memory.read(`${root}/facts/team/the-sky-is-blue.json`)
  expect(read?.provenance.agentName).toBe('graph one')
})
