/** Requests about memory that would hold the event loop of the process for long. Others get their replies meanwhile. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { onPostgres } from '../harness/database.ts'

let app: TestApp
let hostile: string
let other: string
beforeAll(async () => {
  // Folder stores belong to the embedded database.
  if (onPostgres) return
  app = await startApp({})
  hostile = (await app.otherOrg('Hostile')).key
  other = (await app.otherOrg('Other')).key
  expect((await app.call('PUT', '/v1/me/memory-store', { store: 'folder', quota_mb: 100 }, { token: hostile })).status).toBe(200)
})
afterAll(() => app?.stop())

/** The bound of the longest pause in milliseconds. It is generous, because the machine may be busy. Without their bounds, the requests take seconds. */
const pauseMsMax = 2_000

/** Returns the result of some work, and the longest time in milliseconds that another organisation waits for a small reply meanwhile. */
async function beside<T>(work: Promise<T>): Promise<{ result: T; waitMs: number }> {
  let isDone = false
  const working = work.finally(() => {
    isDone = true
  })
  let waitMs = 0
  while (!isDone) {
    const startMs = performance.now()
    expect((await app.call('GET', '/v1/me/whoami', undefined, { token: other })).status).toBe(200)
    waitMs = Math.max(waitMs, performance.now() - startMs)
  }
  return { result: await working, waitMs }
}

const put = async (key: string, text: string) => expect((await app.call('PUT', `/v1/me/memory/o?key=${key}`, text, { token: hostile })).status).toBe(200)

function tool(name: string, args: object): Promise<{ status: number; text: string }> {
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }
  return app.call('POST', '/mcp', body, { token: hostile, headers: { accept: 'application/json, text/event-stream' } })
}

const repeats = 'a'.repeat(32_768)
test.skipIf(onPostgres).each([
  ['that occurs very often', { old_text: repeats.repeat(2) }, 'at least 1000 times'],
  ['that nearly occurs', { old_text: `${repeats.slice(1)}b${repeats}`, replace_all: true }, 'does not occur verbatim'],
  ['that is longer than its bound', { old_text: `${repeats.repeat(4)}` }, '65536'],
])(
  'an edit of a long text %s does not delay another organisation',
  async (_which, args, expected) => {
    await put('agents/repeats', repeats.repeat(8))
    const { result, waitMs } = await beside(tool('memory_edit', { key: 'agents/repeats', new_text: 'b', ...args }))
    expect(result.text).toContain(expected)
    expect(waitMs).toBeLessThan(pauseMsMax)
  },
  60_000,
)

test.skipIf(onPostgres)(
  'searches with very large classes do not delay another organisation',
  async () => {
    const search = (wide: string, times: number) =>
      app.call('GET', `/v1/me/memory/search?regex=true&q=${encodeURIComponent(wide.repeat(times))}`, undefined, { token: hostile })
    const refused = await beside(Promise.all(Array.from({ length: 20 }, () => search('[B-\u{1e942}]', 83))))
    for (const { status } of refused.result) expect([400, 429]).toContain(status)
    expect(refused.result[0]?.json.error.message).toContain('more than 500000 characters')
    // The largest classes that are accepted. At most four searches of an organisation run concurrently.
    const accepted = await beside(Promise.all(Array.from({ length: 4 }, () => search('[B-\u{1e942}]', 3))))
    expect(accepted.result.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect(Math.max(refused.waitMs, accepted.waitMs)).toBeLessThan(pauseMsMax)
  },
  60_000,
)

test.skipIf(onPostgres)(
  'an object of 10 million empty lines does not delay another organisation, wherever a search or a part of it begins',
  async () => {
    const lines = 10_485_750
    await put('agents/lines', `\u0100${'\n'.repeat(lines)}hit`)
    const { json: list } = await app.call('GET', '/v1/me/memory/list?prefix=agents/lines&limit=1', undefined, { token: hostile })
    const search = (...place: number[]) => {
      const cursor = Buffer.from(`b:${JSON.stringify(['agents/lines', list.keys[0].etag, ...place])}`).toString('base64url')
      return app.call('GET', `/v1/me/memory/search?q=hit&prefix=agents/&cursor=${cursor}`, undefined, { token: hostile })
    }
    // A cursor names the byte where its line begins, so the search skips no lines. A cursor without that is refused. The first character has two bytes.
    const found = await beside(Promise.all([search(lines - 5, 0, lines - 3), search(lines - 5, 0), search(lines, 0, 10 ** 15)]))
    expect(found.result.map(({ status, json }) => [status, json.matches?.map(({ line }: { line: number }) => line)])).toEqual([
      [200, [lines + 1]],
      [400, undefined],
      [200, []],
    ])
    const read = await beside(Promise.all([0, 1, lines].map(offset_line => tool('memory_read', { key: 'agents/lines', limit_lines: 1, offset_line }))))
    for (const { text } of read.result) expect(text).toContain(`"total_lines":${lines + 1}`)
    expect(read.result[2]?.text).toContain('"content":"hit"')
    expect(Math.max(found.waitMs, read.waitMs)).toBeLessThan(pauseMsMax)
  },
  60_000,
)
