/** Names and addresses that take time out of proportion to their length. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'

describe('long names', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ env: { FOLDER_STORE: 'on', MEMORY_MCP_MAX_BYTES: '1000000' } })
    expect((await app.call('PUT', '/v1/me/memory-store', { store: 'folder' })).status).toBe(200)
  })
  afterAll(() => app.stop())

  /** Sends a message as it is written here, because a client library would refuse it. */
  const post = async (body: string) => {
    const reply = await fetch(`${app.baseUrl}/mcp`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${app.key}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2025-06-18',
      },
      body,
    })
    return { status: reply.status, text: await reply.text() }
  }
  const message = (method: string, params: string, id = '1'): string => `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`
  const halves = (count: number): string => '\\ud800'.repeat(count)

  test.each([
    ['the address of a resource', message('resources/read', `{"uri":"memory://${'%zz'.repeat(300_000)}"}`)],
    ['the address of a resource, in halves of surrogates', message('resources/read', `{"uri":"memory://${halves(9_990)}${'%'.repeat(10_000)}"}`)],
    ['the name of a tool', message('tools/call', `{"name":"${'a'.repeat(900_000)}"}`)],
    ['an id', message('ping', '{}', `"${'a'.repeat(900_000)}"`)],
    ['the name of an argument', message('tools/call', `{"name":"whoami","arguments":{"${'\\u0001'.repeat(11_000)}":1}}`)],
  ])('HARD-01 /mcp refuses %s that is very long, and says the bound', async (_what, body) => {
    const reply = await post(body)
    expect(reply.status).toBe(400)
    expect(reply.text).toMatch(/-32600.*has more than 65536 bytes/)
    expect(reply.text.length).toBeLessThan(300)
  })

  test('HARD-01 a body has at most 10,000 halves of surrogate pairs, and pairs do not count', async () => {
    const args = (text: string): string => message('tools/call', `{"name":"memory_list","arguments":{"prefix":"${text}"}}`)
    for (const count of [10_001, 150_000]) {
      const refused = await post(args(halves(count)))
      expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('10000 halves of surrogate pairs')])
    }
    expect((await post(args('\\ud83d\\ude00'.repeat(60_000)))).status).toBe(200)
    expect((await post(args(halves(9_000)))).status).toBe(200)
  })

  test('HARD-01 the answer to an unknown tool, prompt or template repeats only the begin of its name', async () => {
    const name = 'n'.repeat(10_000)
    for (const [method, params] of [
      ['tools/call', { name }],
      ['prompts/get', { name }],
      ['completion/complete', { ref: { type: 'ref/prompt', name }, argument: { name: 'a', value: 'b' } }],
      ['completion/complete', { ref: { type: 'ref/resource', uri: name }, argument: { name: 'a', value: 'b' } }],
    ] as const) {
      const reply = await post(message(method, JSON.stringify(params)))
      expect(reply.text, method).toContain('nnnn')
      expect(reply.text.length, method).toBeLessThan(1000)
    }
  })

  test('HARD-01 a name with very many combining marks is refused without delay', async () => {
    const begun = performance.now()
    for (const text of ['a', ' ']) {
      const reply = await app.call('POST', '/v1/me/agents', { name: text + '\u0301\u0323'.repeat(120_000) })
      expect(reply.status).toBe(400)
    }
    // Node sorts the marks of one such name in 27 s.
    expect(performance.now() - begun).toBeLessThan(5_000)
  })

  test('HARD-01 an edit of a text with very many combining marks gets its answer without delay', async () => {
    const key = 'agents/marks.md'
    const saved = await app.call('PUT', `/v1/me/memory/o?key=${key}`, 'a'.padEnd(5) + '\u0301\u0323'.repeat(60_000))
    expect(saved.status).toBeLessThan(300)
    const begun = performance.now()
    const reply = await post(message('tools/call', `{"name":"memory_edit","arguments":{"key":"${key}","old_text":"nothing of it","new_text":"b"}}`))
    expect(reply.text).toContain('isError')
    expect(performance.now() - begun).toBeLessThan(3_000)
  })
})
