/** The watch for loops: its bounds, what it reads of long bodies, and what two processes report. */
import { afterAll, expect, test, vi } from 'vitest'
import { RunLoops } from '../../../src/gateway/usage/runs/loops/run-loops.ts'
import { RunStates } from '../../../src/gateway/usage/runs/loops/run-states.ts'
import { lastTurnOf } from '../../../src/gateway/wire/runs/last-turn.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { silentLog } from '../../../src/platform/observe/log.ts'
import { movableClock } from '../../harness/clock.ts'
import { testDatabase } from '../../harness/database.ts'
import { until } from '../../harness/until.ts'

const database = await testDatabase()
const { db } = database
afterAll(() => database.dispose())

const loopCount = statement<[runId: string], { count: number }>(
  'test.loop_count',
  `select count(*)::int as "count" from webhook_events where type = 'run.loop' and data->>'run_id' = $1::text`,
)
const clock = movableClock()
const watch = () => new RunLoops({ db, log: silentLog, clock })
const run = (runId: string, loop: 'warn' | 'stop' = 'stop') => ({
  ref: { orgId: 1, ownerKind: 'key', ownerId: 1, runId },
  key: `1:key:1:${runId}`,
  actor: '',
  loop,
})
const turn = ['call', 'run', '{', '}', 'result', 'no such file']

test('RUN-05 two processes and a restarted one report a loop of a run once', async () => {
  for (const loops of [watch(), watch(), watch()])
    for (let n = 0; n < 6; n++) (await loops.begin(run('shared', 'warn'), { body: Buffer.from(`body ${n}`), turn }, undefined)).answered()
  const count = async () => (await db.one(loopCount, 'shared')).count
  await until(async () => (await count()) > 0, 'the loop is reported')
  expect(await count()).toBe(1)
})

test('RUN-05 a long body is read in short pieces, each in a turn of its own, and only when an earlier body has the same beginning, end and length', async () => {
  const loops = watch()
  const body = Buffer.alloc(8 * 1024 * 1024, 'x')
  let turns = 0
  const inTurn = async <T>(work: () => T): Promise<T> => {
    turns++
    return work()
  }
  const ask = async (sent: Buffer) => (await loops.begin(run('long'), { body: sent, turn: null }, inTurn)).answered()
  await ask(body)
  expect(turns).toBe(0)
  await ask(body)
  expect(turns).toBeGreaterThanOrEqual(32)
  for (let n = 2; n < 9; n++) await ask(body)
  await expect(ask(body)).rejects.toMatchObject({ code: 'run_loop_detected' })
  const other = Buffer.from(body)
  other[4 * 1024 * 1024] = 121
  await ask(other)
})

test('RUN-05 the memory has a bound for all runs and for each organisation, and a run that rests for an hour begins again', () => {
  const states = new RunStates()
  for (let org = 1; org <= 5; org++) for (let n = 0; n < 3_000; n++) states.of(org, `${org}:${n}`, n)
  expect(states.size).toBe(10_000)
  // An organisation keeps those that were called last.
  const known = states.of(5, '5:2999', 3_000)
  expect(states.of(5, '5:2999', 3_001)).toBe(known)
  expect(states.of(5, '5:2999', 3_001 + 3600_001)).not.toBe(known)
  const busy = new RunStates()
  const first = busy.of(1, 'small', 0)
  for (let n = 0; n < 20_000; n++) busy.of(2, `2:${n}`, 1)
  expect(busy.size).toBe(2_501)
  expect(busy.of(1, 'small', 2)).toBe(first)
})

test('the last turn of a conversation is bounded, ignores ids and the order of keys, and is empty after a final answer', () => {
  const chat = (args: string, id = 'a') => ({
    messages: [
      { role: 'user', content: 'go' },
      { role: 'assistant', tool_calls: [{ id, type: 'function', function: { name: 'f', arguments: args } }] },
      { role: 'tool', tool_call_id: id, content: [{ type: 'text', text: 'out' }] },
    ],
  })
  const first = lastTurnOf('openai', chat('{"a":1,"b":{"c":2,"d":3}}'))
  expect(lastTurnOf('openai', chat('{"b":{"d":3,"c":2},"a":1}', 'b'))).toEqual(first)
  expect(lastTurnOf('openai', chat('{"a":2}'))).not.toEqual(first)
  expect(lastTurnOf('openai', chat('not json'))).toEqual(['call', 'f', 'not json', 'result', '[', '{', 'text', 'out', 'type', 'text', '}', ']'])
  expect(lastTurnOf('openai', { messages: [...chat('{}').messages, { role: 'assistant', content: 'done' }] })).toEqual([])
  for (const messages of [[], [{ role: 'user', content: 'go' }], 'text', null, [null, 7]]) expect(lastTurnOf('openai', { messages })).toBeNull()
  expect(lastTurnOf('openai', { messages: chat('{}').messages.slice(0, 2) })).toBeNull()
  const deep = JSON.parse(`${'['.repeat(3000)}${']'.repeat(3000)}`)
  expect(lastTurnOf('anthropic', toolUse({ deep, wide: Array.from({ length: 50_000 }, (_, n) => n) }))?.length).toBeLessThan(2_100)
  const item = (type: string, more: object) => ({ type, call_id: 'x', ...more })
  const input = [item('function_call', { name: 'f', arguments: '{}' }), item('function_call_output', { output: 'o' })]
  expect(lastTurnOf('openai-responses', { input })).toEqual(['call', 'f', '{', '}', 'result', 'o'])
  expect(lastTurnOf('openai-responses', { input: [...input, { type: 'message', role: 'assistant', content: 'done' }] })).toEqual([])
})

test('RUN-05 a turn with thousands of calls is read within bounds, whatever their arguments contain', () => {
  const list = `{"a":[${'[],'.repeat(5_000)}[]]}`
  const call = { id: 'x', type: 'function', function: { name: 'f', arguments: list } }
  const answers = Array.from({ length: 2_000 }, () => ({ role: 'tool', tool_call_id: 'x', content: 'out' }))
  const messages = [{ role: 'user', content: 'go' }, { role: 'assistant', content: null, tool_calls: Array.from({ length: 2_000 }, () => call) }, ...answers]
  const parse = vi.spyOn(JSON, 'parse')
  const read = lastTurnOf('openai', { messages })
  const parsedChars = parse.mock.calls.reduce((sum, [text]) => sum + text.length, 0)
  parse.mockRestore()
  expect(read?.length).toBeLessThan(2_100)
  expect(parsedChars).toBeGreaterThan(0)
  expect(parsedChars).toBeLessThanOrEqual(64 * 1024)
})

const toolUse = (input: object) => ({
  messages: [
    { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: 'o' }] },
  ],
})
