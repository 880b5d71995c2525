import { describe, expect, test } from 'vitest'
import { until } from '../../harness/until.ts'
import { usageRows } from '../../harness/usage-rows.ts'
import { audioSuite, clip } from './audio-suite.ts'

describe('the room for events of streamed transcripts', () => {
  const { app, postForm } = audioSuite({ REPLIES_MAX_BYTES: '1000000' })
  const held = async (): Promise<number> => {
    const { text } = await app().call('GET', '/metrics', undefined, { token: null })
    return Number(/^brigade_replies_held_bytes (\d+)$/m.exec(text)?.[1] ?? Number.NaN)
  }
  const ask = () =>
    postForm([
      ['file', clip()],
      ['model', 'test-listen'],
      ['stream', 'true'],
    ])
  const headers = { 'content-type': 'text/event-stream' }
  const begin = 'data: {"type":"transcript.text.delta","delta":"'

  test('HARD-03 an event of a transcript that is not complete takes room for replies, and gives it back', async () => {
    const parts = [begin, 'a'.repeat(150_000), 'b"}\n\ndata: {"type":"transcript.text.done","text":"a","usage":{"type":"duration","seconds":2}}\n\n']
    app().alpha.script([{ headers, rawStream: parts, holdAfterRawParts: 2 }])
    const call = ask()
    await until(async () => (await held()) > 80_000, 'the event takes room')
    app().alpha.release()
    expect((await call).text).toContain('transcript.text.done')
    expect(await held()).toBe(0)
    expect((await usageRows(app()))[0]).toMatchObject({ outcome: 'ok', audioSeconds: 2 })
  })

  test('HARD-03 an event of a transcript without room ends the stream with an error event that names the bound, and the call is charged', async () => {
    app().alpha.script([{ headers, rawStream: [begin, 'a'.repeat(700_000)], holdAfterRaw: true }])
    const reply = await ask()
    expect(reply.status).toBe(200)
    expect(reply.text).toContain('REPLIES_MAX_BYTES')
    await until(async () => (await held()) === 0, 'nothing is kept any more')
    expect(app().gateway.app.circuits.openRoutes()).toEqual([])
    expect((await usageRows(app()))[0]).toMatchObject({ outcome: 'cut', audioSeconds: 1, estimated: true })
  })
})
