/** Long transcripts in JSON. A recording of a day has as many words as these. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { heldTurnsClock } from '../../harness/held-turns.ts'
import { fileWithMedia } from '../../harness/media-models.ts'
import { wavOf } from '../../harness/wav.ts'

const clock = heldTurnsClock()
let app: TestApp

beforeAll(async () => {
  app = await startApp({ operatorFile: fileWithMedia, clock })
}, 60_000)
afterAll(() => app?.stop())

const wordsOf = (count: number, word: (index: number) => string): string => Array.from({ length: count }, (_, index) => word(index)).join(',')

/** Answers transcriptions with `text`. */
function answerWith(text: string): void {
  app.alpha.script(({ path }) => (path.includes('transcriptions') ? { body: text, headers: { 'content-type': 'application/json' } } : {}))
}

async function transcribe(): Promise<{ status: number; text: string }> {
  const form = new FormData()
  form.set('model', 'hear')
  form.set('response_format', 'verbose_json')
  form.set('file', new Blob([new Uint8Array(wavOf(5))], { type: 'audio/wav' }), 'a.wav')
  const reply = await fetch(`${app.baseUrl}/v1/audio/transcriptions`, { method: 'POST', body: form, headers: { authorization: `Bearer ${app.key}` } })
  return { status: reply.status, text: await reply.text() }
}

test('a transcript of 12 MB is read in turns: other calls are served meanwhile, and it arrives unchanged', async () => {
  const long = `{"text":"a","duration":5,"words":[${wordsOf(240_000, index => `{"word":"w${index}","start":${index}.12,"end":${index}.98}`)}]}`
  answerWith(long)
  clock.hold()
  let isOver = false
  const transcript = transcribe().finally(() => {
    isOver = true
  })
  // The first slice is read, and the pause after it does not end.
  for (let calls = 0; calls < 20; calls++)
    expect((await app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: [{ role: 'user', content: 'x' }] })).status).toBe(200)
  await new Promise(resolve => setTimeout(resolve, 500))
  expect(isOver).toBe(false)
  clock.release()
  const { status, text } = await transcript
  expect(status).toBe(200)
  expect(text === long).toBe(true)
})

test('a transcript whose words have thousands of shapes is refused', async () => {
  answerWith(`{"text":"a","duration":5,"words":[${wordsOf(60_000, index => `{"k${index % 6000}":1,"b":2,"c":3}`)}]}`)
  const { status, text } = await transcribe()
  expect(status).toBe(502)
  expect(text).toContain('with no transcript')
})

test('a long transcript that is not JSON is refused', async () => {
  answerWith(`{"text":"a","words":[${wordsOf(60_000, () => '{"word":"w","start":1,"end":2}')}`)
  expect((await transcribe()).status).toBe(502)
})
