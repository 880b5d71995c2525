/** Long JSON bodies of management are parsed in turns of the event loop, like those of inference. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseBodyInTurns } from '../../../src/gateway/wire/json/json-body.ts'
import { managementBounds } from '../../../src/gateway/wire/json/json-scan.ts'
import { startApp, type TestApp } from '../../harness/app.ts'

const mb = 1024 * 1024

let app: TestApp
beforeAll(async () => {
  app = await startApp({ env: { FOLDER_STORE: 'on' } })
  expect((await app.call('PUT', '/v1/me/memory-store', { store: 'folder' })).status).toBe(200)
})
afterAll(() => app.stop())

const append = (body: string) => app.call('POST', '/v1/me/memory/append', body)

test('a long body of management is parsed in many turns of the event loop, and a short one immediately', async () => {
  const text = `{"path":"agents","content":"${'\\n'.repeat(8 * mb)}"}`
  let turns = 0
  let isOver = false
  const count = (): void => {
    turns++
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  const value = await parseBodyInTurns(Buffer.from(text), managementBounds)
  isOver = true
  expect(turns).toBeGreaterThan(12)
  expect(JSON.stringify(value)).toBe(text)
  expect(parseBodyInTurns(Buffer.from('{"a":1}'), managementBounds)).toEqual({ a: 1 })
})

test('an entry of megabytes is stored as it was sent, and a long body that is not JSON is refused', async () => {
  const content = 'é"\\\n'.repeat(mb / 2)
  const made = await append(JSON.stringify({ path: 'agents', content }))
  expect(made.status, made.text).toBe(201)
  expect((await app.call('GET', `/v1/me/memory/o?key=${encodeURIComponent(made.json.key)}`)).text).toContain(content)
  for (const wrong of [`{"path":"agents","content":"${'\\n'.repeat(mb)}".5}`, `{"path":"agents","content":"${'\\n'.repeat(mb)}"`, `[${'\\n'.repeat(mb)}`]) {
    const refused = await append(wrong)
    expect([refused.status, refused.json.error.message]).toEqual([400, 'The body is not valid JSON.'])
  }
})

test('a body whose member has a very long name, or that is one long text, is refused before it is parsed', async () => {
  const calls = [append, (body: string) => app.call('POST', '/v1/chat/completions', body)]
  for (const call of calls) {
    const named = await call(`{"model":"alpha-only","messages":[{"${'\\n'.repeat(mb)}" : 1}]}`)
    expect([named.status, named.json.error.message]).toEqual([400, 'The body has a name of a member that is too long: at most 65536 bytes.'])
    const text = await call(`"${'\\n'.repeat(mb)}"`)
    expect([text.status, text.json.error.message]).toEqual([400, 'The body is longer than 1 MiB, so it must be an object or a list.'])
  }
})
