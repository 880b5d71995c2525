/** How long a body keeps its room, and how long a recording is waited for. */
import { describe, expect, test } from 'vitest'
import { until } from '../../harness/until.ts'
import { audioSuite, clip } from './audio-suite.ts'

describe('waits', () => {
  const { app, postForm } = audioSuite({ FIRST_BYTE_TIMEOUT_MS: '1500', FORM_FILE_LIMIT_BYTES: '20000000' })
  const bodies = async (): Promise<number> => {
    const { text } = await app().call('GET', '/metrics', undefined, { token: null })
    return Number(/^brigade_request_bodies_bytes (\d+)$/m.exec(text)?.[1] ?? Number.NaN)
  }

  test('HARD-02 the body of a call whose caller has left keeps its room until the provider is not followed any more', async () => {
    const content = 'a'.repeat(500_000)
    app().alpha.script([{ hold: true }])
    const leaving = new AbortController()
    // The caller asks for thought, so the provider is followed.
    const body = { model: 'test-model', provider: 'alpha', reasoning_effort: 'high', messages: [{ role: 'user', content }] }
    const call = fetch(`${app().baseUrl}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${app().key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: leaving.signal,
    }).catch(() => null)
    await app().alpha.arrived(1)
    leaving.abort()
    await call
    await new Promise(resolve => setTimeout(resolve, 300))
    expect(app().alpha.requests[0]?.aborted).toBe(false)
    expect(await bodies()).toBeGreaterThan(content.length)
    app().alpha.release()
    await until(async () => (await bodies()) === 0, 'the room is given back')
  })

  test('a recording of three minutes is waited for longer than FIRST_BYTE_TIMEOUT_MS, and no other route gets it', async () => {
    app().alpha.script([{ hold: true, body: { text: 'words' } }])
    const call = postForm([
      ['model', 'test-listen'],
      ['file', clip(180)],
    ])
    await app().alpha.arrived(1)
    await new Promise(resolve => setTimeout(resolve, 3000))
    app().alpha.release()
    expect((await call).status).toBe(200)
    expect([app().alpha.requests.length, app().beta.requests.length, app().indus.requests.length]).toEqual([1, 0, 0])
  })
})
