import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A request that a provider received. */
export interface Seen {
  readonly provider: string
  readonly method: string
  /** The path after the provider's base URL, with the query. */
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly raw: Buffer
  readonly json: Record<string, unknown>
  readonly form: FormData | null
  /** True when the client closed the connection before the answer was complete. */
  aborted: boolean
}

export type Answer = { readonly status?: number; readonly body: unknown; readonly type?: string; readonly headers?: Record<string, string> } | 'hang'

/** Keys that the providers accept, in the forms of the catalog. */
export const keys = {
  openai: 'sk-proj-test-openai-0000',
  together: 'tgp_v1_test_together',
  fireworks: 'fw_test_fireworks',
  xai: 'xai-test-grok',
  zhipu: '0123456789abcdef0123456789abcdef.AbCdEfGhIjKlMnOp',
  google: `AIza${'x'.repeat(35)}`,
  alibaba: 'dash-test-key',
  stability: 'stab-test-key',
  bytedance: 'ark-test-key',
  'black-forest-labs': 'bfl-test-key',
  minimax: 'mm-test-key',
  stepfun: 'step-test-key',
  // A provider in India with OpenAI's images API. The operator's file adds it.
  ganga: 'ganga-test-key',
} as const
export type ProviderName = keyof typeof keys

/** The smallest picture: one pixel. */
export const pixel = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=', 'base64')
export const base64 = pixel.toString('base64')

export interface ImageProviders {
  readonly seen: Seen[]
  /** Settings that make the providers of the catalog use this server. */
  readonly env: Record<string, string>
  readonly origin: string
  /** Sets a function that decides the answers. When it returns undefined, the provider answers as documented. */
  answer(decide: ((seen: Seen) => Answer | undefined | Promise<Answer | undefined>) | null): void
  /** Number of polls before a job is done. */
  pendingLooks: number
  of(provider: ProviderName): Seen[]
  reset(): void
  close(): Promise<void>
}

const paths: Record<ProviderName, string> = {
  openai: '/openai/v1',
  together: '/together/v1',
  fireworks: '/fireworks/inference/v1',
  xai: '/xai/v1',
  zhipu: '/zhipu/api/paas/v4',
  google: '/google/v1beta/openai',
  alibaba: '/alibaba/compatible-mode/v1',
  stability: '/stability/v2beta',
  bytedance: '/bytedance/api/v3',
  'black-forest-labs': '/black-forest-labs/v1',
  minimax: '/minimax/v1',
  stepfun: '/stepfun/v1',
  ganga: '/ganga/v1',
}

/** Starts an HTTP server that acts as every image provider, as documented: it refuses wrong keys and unknown fields. */
export async function startImageProviders(): Promise<ImageProviders> {
  const seen: Seen[] = []
  const looks = new Map<string, number>()
  let decide: ((seen: Seen) => Answer | undefined | Promise<Answer | undefined>) | null = null
  const server = createServer((request, response) => {
    serve(request, response).catch(() => response.destroy())
  })
  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const one = await record(request, response)
    seen.push(one)
    const answer = (await decide?.(one)) ?? documented(one)
    if (answer === 'hang') return
    const bytes = Buffer.isBuffer(answer.body) ? answer.body : Buffer.from(JSON.stringify(answer.body))
    response
      .writeHead(answer.status ?? 200, { 'content-type': answer.type ?? 'application/json', 'content-length': bytes.length, ...answer.headers })
      .end(bytes)
  }
  function documented(one: Seen): Answer {
    if (!hasKey(one)) return { status: 401, body: { error: { message: 'wrong key', type: 'authentication_error', code: 'invalid_api_key' } } }
    if (one.method === 'GET' && one.path === '/models') return { body: { object: 'list', data: [{ id: 'some-model' }] } }
    return players[one.provider as ProviderName](one, { origin, looks, pending: providers.pendingLooks })
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const providers: ImageProviders = {
    seen,
    origin,
    env: Object.fromEntries(Object.entries(paths).map(([name, path]) => [`${name.toUpperCase().replaceAll('-', '_')}_BASE_URL`, origin + path])),
    answer(next) {
      decide = next
    },
    pendingLooks: 2,
    of: provider => seen.filter(one => one.provider === provider),
    reset() {
      seen.length = 0
      looks.clear()
      decide = null
      providers.pendingLooks = 2
    },
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return providers
}

async function record(request: IncomingMessage, response: ServerResponse): Promise<Seen> {
  const parts: Buffer[] = []
  for await (const part of request as AsyncIterable<Buffer>) parts.push(part)
  const raw = Buffer.concat(parts)
  const url = request.url ?? ''
  const provider = url.split('/')[1] ?? ''
  const base = paths[provider as ProviderName].replace('/compatible-mode/v1', '').replace('/v1beta/openai', '')
  const type = request.headers['content-type'] ?? ''
  const one: Seen = {
    provider,
    method: request.method ?? '',
    path: url.slice(base.length),
    headers: request.headers,
    raw,
    json: type.includes('json') ? (JSON.parse(raw.toString('utf8')) as Record<string, unknown>) : {},
    form: type.startsWith('multipart/') ? await new Response(raw, { headers: { 'content-type': type } }).formData() : null,
    aborted: false,
  }
  response.once('close', () => {
    one.aborted = !response.writableFinished
  })
  return one
}

function hasKey({ provider, headers }: Seen): boolean {
  const key = keys[provider as ProviderName]
  switch (provider) {
    case 'black-forest-labs':
      return headers['x-key'] === key && headers.authorization === undefined
    case 'google':
      return headers['x-goog-api-key'] === key && headers.authorization === undefined
    default:
      return headers.authorization === `Bearer ${key}`
  }
}

interface World {
  readonly origin: string
  readonly looks: Map<string, number>
  readonly pending: number
}
type Player = (seen: Seen, world: World) => Answer

const notFound: Answer = { status: 404, body: { error: { message: 'no such path', type: 'invalid_request_error', code: null } } }
const bad = (message: string) => ({ status: 400, body: { error: { message, type: 'invalid_request_error', code: 'invalid_parameter' } } })

/** Returns a field that the documentation does not name. */
const strange = (body: object, known: readonly string[]): string | undefined => Object.keys(body).find(name => !known.includes(name))
const count = (n: unknown): number => (typeof n === 'number' ? n : 1)
const images = (n: number, one: (index: number) => object): object[] => Array.from({ length: n }, (_, index) => one(index))
const urlOf = (provider: string, index = 0): string => `https://images.example/${provider}/${index}.png?sig=a%2Bb&exp=1`

/** Plays POST /images/generations with the fields of this provider. */
function imagesApi(provider: string, known: readonly string[], reply: (json: Record<string, unknown>) => Record<string, unknown>): Player {
  return seen => {
    if (seen.method !== 'POST' || seen.path !== '/images/generations') return notFound
    const unknown = strange(seen.json, known)
    if (unknown !== undefined) return bad(`${provider} does not know ${unknown}`)
    const made = reply(seen.json)
    return 'status' in made && 'body' in made ? { status: Number(made['status']), body: made['body'] } : { body: made }
  }
}

const openai: Player = seen => {
  if (seen.path === '/images/edits') return openaiEdit(seen)
  const isGpt = String(seen.json['model']).startsWith('gpt-image')
  const known = ['model', 'prompt', 'n', 'size', 'quality', 'user', ...(isGpt ? ['background', 'moderation', 'output_format'] : ['response_format', 'style'])]
  return imagesApi('openai', known, json => {
    if (json['model'] === 'dall-e-3' && count(json['n']) !== 1) return bad('dall-e-3 makes one image')
    return isGpt
      ? {
          created: 1_700_000_001,
          background: 'opaque',
          data: images(count(json['n']), () => ({ b64_json: base64 })),
          usage: { input_tokens: 9, output_tokens: 272, total_tokens: 281 },
        }
      : {
          created: 1_700_000_001,
          data: images(count(json['n']), index =>
            json['response_format'] === 'b64_json' ? { b64_json: base64 } : { url: urlOf('openai', index), revised_prompt: 'as asked' },
          ),
        }
  })(seen, { origin: '', looks: new Map(), pending: 0 })
}

function openaiEdit({ form }: Seen): Answer {
  if (form === null) return bad('send a form')
  if (form.has('response_format')) return bad('Unknown parameter: response_format')
  const given = [...form.getAll('image'), ...form.getAll('image[]')]
  if (given.length === 0 || given.some(file => typeof file === 'string')) return bad('image must be a file')
  const n = Number(form.get('n') ?? 1)
  return { body: { created: 1_700_000_002, data: images(n, () => ({ b64_json: base64 })) } }
}

const players: Record<ProviderName, Player> = {
  openai,
  together: imagesApi('together', ['model', 'prompt', 'n', 'width', 'height', 'response_format', 'steps', 'seed', 'negative_prompt'], json => {
    if (json['response_format'] !== 'url' && json['response_format'] !== 'base64') return bad('response_format must be url or base64')
    const isBase64 = json['response_format'] === 'base64'
    return {
      id: 'tg-1',
      object: 'list',
      model: json['model'],
      data: images(count(json['n']), index => ({ index, ...(isBase64 ? { b64_json: base64 } : { url: urlOf('together', index) }) })),
    }
  }),
  xai: imagesApi('xai', ['model', 'prompt', 'n', 'response_format', 'user'], json => ({
    data: images(count(json['n']), index =>
      json['response_format'] === 'b64_json' ? { b64_json: base64 } : { url: urlOf('xai', index), revised_prompt: 'revised' },
    ),
  })),
  zhipu: imagesApi('zhipu', ['model', 'prompt', 'size', 'quality', 'user_id'], () => ({
    created: 1_700_000_003,
    data: [{ url: urlOf('zhipu') }],
    content_filter: [],
  })),
  bytedance: imagesApi('bytedance', ['model', 'prompt', 'size', 'response_format', 'seed', 'watermark'], json => ({
    model: json['model'],
    created: 1_700_000_004,
    data: [json['response_format'] === 'b64_json' ? { b64_json: base64, size: json['size'] } : { url: urlOf('bytedance'), size: json['size'] }],
    usage: { generated_images: 1 },
  })),
  stepfun: imagesApi('stepfun', ['model', 'prompt', 'size', 'n', 'response_format', 'seed', 'steps', 'cfg_scale'], json => ({
    created: 1_700_000_005,
    data: [{ seed: 7, finish_reason: 'success', ...(json['response_format'] === 'b64_json' ? { image: base64 } : { url: urlOf('stepfun') }) }],
  })),
  ganga: imagesApi('ganga', ['model', 'prompt', 'n', 'size', 'response_format', 'quality', 'user'], json => ({
    created: 1_700_000_006,
    data: images(count(json['n']), index =>
      json['response_format'] === 'b64_json' ? { b64_json: base64 } : { url: urlOf(`ganga/${String(json['model'])}`, index) },
    ),
  })),
  google(seen) {
    if (seen.path !== '/v1beta/models/gemini-2.5-flash-image:generateContent') return notFound
    const unknown = strange(seen.json, ['contents', 'generationConfig', 'safetySettings', 'systemInstruction'])
    if (unknown !== undefined) return bad(`no field ${unknown}`)
    return {
      body: {
        candidates: [
          {
            content: { role: 'model', parts: [{ text: 'Here it is' }, { inlineData: { mimeType: 'image/png', data: base64 } }] },
            finishReason: 'STOP',
            index: 0,
          },
        ],
        usageMetadata: { promptTokenCount: 8, candidatesTokenCount: 1290, totalTokenCount: 1298 },
      },
    }
  },
  stability({ path, form, headers }) {
    if (path !== '/stable-image/generate/sd3' || form === null) return notFound
    if (headers.accept !== 'application/json') return { body: pixel, type: 'image/png' }
    const unknown = strange(Object.fromEntries(form.entries()), [
      'prompt',
      'mode',
      'aspect_ratio',
      'model',
      'seed',
      'output_format',
      'negative_prompt',
      'style_preset',
      'cfg_scale',
    ])
    if (unknown !== undefined) return { status: 400, body: { id: 'x', name: 'bad_request', errors: [`${unknown}: unknown`] } }
    return { body: { image: base64, finish_reason: 'SUCCESS', seed: 1 } }
  },
  fireworks({ path, json, headers }) {
    if (
      path === '/workflows/accounts/fireworks/models/flux-1-schnell-fp8/text_to_image' ||
      path === '/workflows/accounts/fireworks/models/flux-1-dev-fp8/text_to_image'
    ) {
      const unknown = strange(json, ['prompt', 'aspect_ratio', 'guidance_scale', 'num_inference_steps', 'seed'])
      if (unknown !== undefined) return bad(`no field ${unknown}`)
      return headers.accept === 'application/json'
        ? { body: { id: '1', base64: [`data:image/png;base64,${base64}`], finishReason: 'SUCCESS', seed: 3 } }
        : { body: pixel, type: 'image/png' }
    }
    if (path !== '/image_generation/accounts/fireworks/models/stable-diffusion-xl-1024-v1-0') return notFound
    const unknown = strange(json, ['prompt', 'height', 'width', 'samples', 'cfg_scale', 'negative_prompt', 'sampler', 'steps', 'seed', 'safety_check'])
    if (unknown !== undefined) return bad(`no field ${unknown}`)
    return { body: pixel, type: 'image/png', headers: { 'finish-reason': 'SUCCESS', seed: '3' } }
  },
  minimax({ path, json }) {
    if (path !== '/image_generation') return notFound
    const unknown = strange(json, ['model', 'prompt', 'n', 'aspect_ratio', 'width', 'height', 'response_format', 'seed', 'prompt_optimizer', 'aigc_watermark'])
    if (unknown !== undefined) return { body: { base_resp: { status_code: 2013, status_msg: `invalid params, ${unknown}` } } }
    const n = count(json['n'])
    const data =
      json['response_format'] === 'base64'
        ? { image_base64: images(n, () => ({})).map(() => base64) }
        : { image_urls: images(n, () => ({})).map((_, index) => urlOf('minimax', index)) }
    return { body: { id: 'mm-1', data, metadata: { success_count: String(n), failed_count: '0' }, base_resp: { status_code: 0, status_msg: 'success' } } }
  },
  'black-forest-labs'({ method, path, json }, { origin, looks, pending }) {
    if (method === 'GET' && path === '/credits') return { body: { credits: 12 } }
    if (method === 'POST' && path === '/flux-pro-1.1') {
      const unknown = strange(json, ['prompt', 'width', 'height', 'seed', 'prompt_upsampling', 'safety_tolerance', 'output_format', 'image_prompt'])
      if (unknown !== undefined)
        return { status: 422, body: { detail: [{ loc: ['body', unknown], msg: 'Extra inputs are not permitted', type: 'extra_forbidden' }] } }
      const id = `job-${looks.size + 1}`
      looks.set(id, 0)
      return { body: { id, polling_url: `${origin}/black-forest-labs/v1/get_result?id=${id}` } }
    }
    const id = /^\/get_result\?id=(.+)$/.exec(path)?.[1] ?? ''
    const before = looks.get(id)
    if (method !== 'GET' || before === undefined) return { status: 404, body: { id, status: 'Task not found' } }
    looks.set(id, before + 1)
    return {
      body: before < pending ? { id, status: 'Pending', result: null } : { id, status: 'Ready', result: { sample: urlOf('bfl'), prompt: 'p', seed: 1 } },
    }
  },
  alibaba({ method, path, json, headers }, { looks, pending }) {
    if (method === 'POST' && path === '/api/v1/services/aigc/text2image/image-synthesis') {
      if (headers['x-dashscope-async'] !== 'enable')
        return { status: 403, body: { code: 'AccessDenied', message: 'current user api does not support synchronous calls.' } }
      const { size, n } = json['parameters'] as Record<string, unknown>
      if (n !== 1 || !['1664*928', '1472*1104', '1328*1328', '1104*1472', '928*1664'].includes(String(size)))
        return { status: 400, body: { code: 'InvalidParameter', message: 'size or n' } }
      const id = `task-${looks.size + 1}`
      looks.set(id, 0)
      return { body: { output: { task_status: 'PENDING', task_id: id }, request_id: 'r' } }
    }
    const [, id = '', end] = /^\/api\/v1\/tasks\/([\w-]+)(\/cancel)?$/.exec(path) ?? []
    const before = looks.get(id)
    if (before === undefined) return { body: { output: { task_id: id, task_status: 'UNKNOWN' } } }
    if (method === 'POST' && end !== undefined) return { body: { request_id: 'r' } }
    looks.set(id, before + 1)
    const output =
      before < pending
        ? { task_id: id, task_status: before === 0 ? 'PENDING' : 'RUNNING' }
        : { task_id: id, task_status: 'SUCCEEDED', results: [{ url: urlOf('alibaba') }] }
    return { body: { request_id: 'r', output } }
  },
}
