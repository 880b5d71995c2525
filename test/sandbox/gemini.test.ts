import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../src/platform/clock.ts'
import { systemIds } from '../../src/platform/values/ids.ts'
import { startSandbox } from '../../src/sandbox/sandbox.ts'

let sandbox: Awaited<ReturnType<typeof startSandbox>>
beforeAll(async () => {
  sandbox = await startSandbox({ clock: systemClock, ids: systemIds, host: '127.0.0.1' })
})
afterAll(() => sandbox.close())

interface GeminiReply {
  readonly candidates: {
    content: { parts: { text?: string; thought?: boolean; functionCall?: unknown; thoughtSignature?: string }[] }
    finishReason?: string
  }[]
  readonly usageMetadata: Record<string, number>
  readonly error?: { status: string; message: string }
}

async function post(path: string, body: unknown): Promise<Response> {
  return fetch(`${sandbox.url}/${path}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
}
const ask = async (model: string, body: unknown): Promise<GeminiReply> => (await (await post(`models/${model}:generateContent`, body)).json()) as GeminiReply
const contents = (text: string): unknown[] => [{ role: 'user', parts: [{ text }] }]
const tools = [{ functionDeclarations: [{ name: 'weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } }] }]

describe('the sandbox in the Gemini format', () => {
  test('gives the same text and usage in a stream and in a plain reply, with thoughts when the request asks for them', async () => {
    const body = { contents: contents('why is the sky blue'), generationConfig: { thinkingConfig: { includeThoughts: true } } }
    const whole = await ask('sandbox-reasoning', body)
    const text = await (await post('models/sandbox-reasoning:streamGenerateContent?alt=sse', body)).text()
    const chunks = text
      .split('\r\n\r\n')
      .filter(event => event !== '')
      .map(event => JSON.parse(event.replace(/^data: /, '')) as GeminiReply)
    const said = (replies: readonly GeminiReply[], thought: boolean): string =>
      replies
        .flatMap(reply => reply.candidates[0]?.content.parts ?? [])
        .filter(part => (part.thought === true) === thought)
        .map(part => part.text ?? '')
        .join('')
    expect(said(chunks, false)).toBe(said([whole], false))
    expect(said(chunks, true)).toBe(said([whole], true))
    expect(said([whole], true)).toContain('Simulated reasoning')
    expect(chunks.at(-1)?.usageMetadata).toEqual(whole.usageMetadata)
    expect(whole.usageMetadata['thoughtsTokenCount']).toBeGreaterThan(0)
  })

  test('signs its calls, and accepts only the signature that it gave', async () => {
    const first = await ask('sandbox-chat', { contents: contents('call weather {"city":"Pune"}'), tools })
    const [part] = first.candidates[0]?.content.parts ?? []
    expect(part?.functionCall).toEqual({ name: 'weather', args: { city: 'Pune' } })
    const turn = (signature: string | undefined) => ({
      contents: [
        ...contents('call weather {"city":"Pune"}'),
        { role: 'model', parts: [{ functionCall: part?.functionCall, thoughtSignature: signature }] },
        { role: 'user', parts: [{ functionResponse: { name: 'weather', response: { degrees: 31 } } }] },
      ],
      tools,
    })
    expect((await ask('sandbox-chat', turn(part?.thoughtSignature))).candidates[0]?.content.parts[0]?.text).toContain('the tool answered')
    expect((await ask('sandbox-chat', turn('b3RoZXI='))).error?.message).toContain('signature')
  })

  test('refuses what the real API refuses: unknown models, empty requests, and schema keywords that the API does not support', async () => {
    expect((await ask('nobody', { contents: contents('hi') })).error?.status).toBe('NOT_FOUND')
    expect((await ask('sandbox-chat', {})).error?.status).toBe('INVALID_ARGUMENT')
    const odd = [{ functionDeclarations: [{ name: 'weather', parameters: { type: 'object', properties: {}, additionalProperties: false } }] }]
    expect((await ask('sandbox-chat', { contents: contents('hi'), tools: odd })).error?.message).toContain('additionalProperties')
  })

  test('stops at the token limit, and fails when the prompt tells it to', async () => {
    const cut = await ask('sandbox-chat', { contents: contents('hello'), generationConfig: { maxOutputTokens: 2 } })
    expect(cut.candidates[0]?.finishReason).toBe('MAX_TOKENS')
    expect(cut.usageMetadata['candidatesTokenCount']).toBe(2)
    expect((await post('models/sandbox-chat:generateContent', { contents: contents('fail 503') })).status).toBe(503)
  })
})
