import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach } from 'vitest'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'
import { checkAgainstRow } from '../../harness/row-contract.ts'
import type { UpstreamServer } from '../../harness/upstream-server.ts'
import { wavOf } from '../../harness/wav.ts'

/** ₹0.60 a minute is 10,000 micro-rupees a second. ₹50 for a million characters is 50 micro-rupees for each. */
export const perSecondUinr = 10_000n
export const perCharacterUinr = 50n
const price = { source: 'test', as_of: '2026-01-01' }
const audioModels = [
  {
    id: 'test-listen',
    kind: 'transcription',
    routes: [
      { provider: 'alpha', upstream_model: 'alpha-listen', inr_per_minute: 0.6, ...price },
      { provider: 'beta', upstream_model: 'beta-listen', inr_per_minute: 0.6, ...price },
      { provider: 'indus', upstream_model: 'indus-listen', inr_per_minute: 0.6, ...price },
    ],
  },
  {
    id: 'test-speak',
    kind: 'speech',
    default_voice: 'hf_alpha',
    routes: [
      { provider: 'alpha', upstream_model: 'alpha-speak', inr_per_million_characters: 50, ...price },
      { provider: 'beta', upstream_model: 'beta-speak', inr_per_million_characters: 50, ...price },
    ],
  },
]

interface Sent {
  readonly fields: readonly (readonly [string, string])[]
  readonly file: Buffer
  readonly filename: string
  readonly type: string
}

export const codeOf = async (reply: Response): Promise<string> => ((await reply.json()) as { error: { code: string } }).error.code

/** Returns the form that the provider received, read by a parser that is not part of the gateway. */
export async function formOf(upstream: UpstreamServer, at = 0): Promise<Sent> {
  const request = upstream.requests[at]
  if (request === undefined) throw new Error('nothing was sent')
  const form = await new Response(new Uint8Array(request.raw), { headers: { 'content-type': String(request.headers['content-type']) } }).formData()
  const entries = [...form.entries()]
  const file = entries.find(([, value]) => typeof value !== 'string')?.[1]
  if (!(file instanceof File)) throw new Error('no file was sent')
  const fields = entries.flatMap(([name, value]) => (typeof value === 'string' ? [[name, value] as const] : []))
  return { fields, file: Buffer.from(await file.arrayBuffer()), filename: file.name, type: file.type }
}

export const transcript = { text: 'hello from the recording', usage: { type: 'duration', seconds: 3 } }
export const clip = (seconds = 1) => new Blob([new Uint8Array(wavOf(seconds))], { type: 'audio/wav' })
export const sound = (chunks: Iterable<Uint8Array>, more: object = {}) => ({ headers: { 'content-type': 'audio/mpeg' }, rawStream: chunks, ...more })
export const piece = (fill: number, bytes = 1000) => new Uint8Array(bytes).fill(fill)

/** A gateway with models that read and write sound, for the suite that calls this; `app` and `client` are there once it has started. `env` adds settings. */
export function audioSuite(env: Readonly<Record<string, string>> = {}) {
  const started: { app?: TestApp; client?: OpenAI } = {}
  const the = <T>(part: T | undefined): T => {
    if (part === undefined) throw new Error('asked for before the gateway has started')
    return part
  }
  const app = (): TestApp => the(started.app)
  beforeAll(async () => {
    started.app = await startApp({
      env: { CIRCUIT_FAILURES: '1000', FORM_FILE_LIMIT_BYTES: '500000', ...env },
      operatorFile(urls) {
        const file = defaultOperatorFile(urls)
        return { ...file, models: [...file.models, ...audioModels] }
      },
    })
    started.client = new OpenAI({ apiKey: started.app.key, baseURL: `${started.app.baseUrl}/v1`, maxRetries: 0 })
  })
  afterAll(() => app().stop())
  beforeEach(() => {
    for (const upstream of [app().alpha, app().beta, app().indus]) upstream.reset()
  })

  const listen = (body: object = transcript) => app().alpha.script([{ body }])
  const postForm = async (fields: readonly (readonly [string, string | Blob])[], token: string | null = app().key, headers: Record<string, string> = {}) => {
    const form = new FormData()
    for (const [name, value] of fields) {
      if (typeof value === 'string') form.append(name, value)
      else form.append(name, value, 'clip.wav')
    }
    const reply = await fetch(`${app().baseUrl}/v1/audio/transcriptions`, {
      method: 'POST',
      body: form,
      headers: { ...(token === null ? {} : { authorization: `Bearer ${token}` }), ...headers },
    })
    const text = await reply.text()
    const json = reply.headers.get('content-type')?.includes('json') ? JSON.parse(text) : null
    checkAgainstRow('POST', '/v1/audio/transcriptions', reply.status, json)
    return { status: reply.status, headers: reply.headers, text, json }
  }
  const speak = (body: object = {}, options: { token?: string | null; signal?: AbortSignal } = {}) =>
    fetch(`${app().baseUrl}/v1/audio/speech`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(options.token === null ? {} : { authorization: `Bearer ${options.token ?? app().key}` }) },
      body: JSON.stringify({ model: 'test-speak', input: 'Hello', voice: 'hf_beta', ...body }),
      ...(options.signal ? { signal: options.signal } : {}),
    })

  return { app, client: () => the(started.client), listen, postForm, speak }
}
