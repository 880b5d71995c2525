/**
 * A separate process with an honest provider and 20 honest callers, so that the work of the hostile side does not delay the measured calls. It sends its
 * parent the address of the provider. When it receives an address and a key, its callers begin. On request it reports their calls since the last report.
 */
import { createServer } from 'node:http'

const callers = { chat: 6, stream: 4, messages: 3, memory: 3, mcp: 2, embeddings: 2 }
/** The pause of a caller between two calls. */
const pauseMs = 250
/** A call that takes longer counts as lost. */
const timeoutMs = 15_000
const words = ['Hello', ' from', ' an', ' honest', ' provider']
const usage = { prompt_tokens: 5, completion_tokens: 5, total_tokens: 10 }

const provider = createServer((request, response) => {
  // A dying gateway cuts its connections. The callers report this, so the error is ignored here.
  answer(request, response).catch(() => response.destroy())
})

async function answer(request, response) {
  let text = ''
  for await (const chunk of request) text += chunk
  const body = text === '' ? {} : JSON.parse(text)
  const head = { id: 'chatcmpl-1', created: 1, model: 'honest' }
  if (request.url?.endsWith('/embeddings')) {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ object: 'list', data: [{ object: 'embedding', index: 0, embedding: Array(64).fill(0.25) }], model: 'honest', usage }))
  } else if (body.stream === true) {
    response.setHeader('content-type', 'text/event-stream')
    const send = choice => response.write(`data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices: [{ index: 0, ...choice }] })}\n\n`)
    for (const content of words) {
      send({ delta: { role: 'assistant', content }, finish_reason: null })
      await new Promise(done => setTimeout(done, 10))
    }
    send({ delta: {}, finish_reason: 'stop' })
    response.end(`data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices: [], usage })}\n\ndata: [DONE]\n\n`)
  } else {
    response.setHeader('content-type', 'application/json')
    const message = { role: 'assistant', content: words.join('') }
    response.end(JSON.stringify({ ...head, object: 'chat.completion', choices: [{ index: 0, message, finish_reason: 'stop' }], usage }))
  }
}

let target = null
let times = []
let lost = []
let isPaused = true

async function ask(method, path, body, headers = {}) {
  const { baseUrl, key } = target
  const response = await fetch(baseUrl + path, {
    method,
    headers: { authorization: `Bearer ${key}`, ...(typeof body === 'object' ? { 'content-type': 'application/json' } : {}), ...headers },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    signal: AbortSignal.timeout(timeoutMs),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${response.status} ${text.slice(0, 200)}`)
  return text
}

const said = { model: 'honest-model', max_tokens: 50, messages: [{ role: 'user', content: 'Hello' }] }
const mcpHeaders = { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-06-18' }
const calls = {
  chat: async () => (await ask('POST', '/v1/chat/completions', said)).includes('honest provider'),
  stream: async () => (await ask('POST', '/v1/chat/completions', { ...said, stream: true })).includes('[DONE]'),
  messages: async () => (await ask('POST', '/v1/messages', { ...said, stream: true })).includes('message_stop'),
  embeddings: async () => (await ask('POST', '/v1/embeddings', { model: 'honest-embed', input: 'Hello' })).includes('embedding'),
  memory: async number => {
    const path = `/v1/me/memory/o?key=${target.memory}honest-${number}.md`
    const text = `Turn of caller ${number}, ${Date.now()}`
    await ask('PUT', path, text)
    return (await ask('GET', path)) === text
  },
  mcp: async () => (await ask('POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }, mcpHeaders)).includes('memory_read'),
}

async function callAgain(kind, number) {
  for (;;) {
    await new Promise(done => setTimeout(done, pauseMs * (0.5 + Math.random())))
    if (isPaused) continue
    const at = target
    const startedMs = performance.now()
    let why = null
    try {
      if (!(await calls[kind](number))) why = 'the answer was another one'
    } catch (error) {
      why = `${error.message}${error.cause === undefined ? '' : ` (${error.cause.message})`}`
    }
    // Calls that ran while the gateway was replaced do not count.
    if (at !== target || isPaused) continue
    const tookMs = performance.now() - startedMs
    times.push(tookMs)
    if (why !== null) lost.push(`${kind} after ${Math.round(tookMs)} ms: ${why}`)
  }
}

process.on('message', message => {
  if (message.kind === 'begin') {
    target = message
    isPaused = false
  } else if (message.kind === 'pause') isPaused = true
  else if (message.kind === 'report') {
    process.send({ kind: 'report', times, lost })
    times = []
    lost = []
  }
})
process.on('disconnect', () => process.exit(0))
provider.listen(0, '127.0.0.1', () => process.send({ kind: 'ready', port: provider.address().port }))
for (const [kind, count] of Object.entries(callers)) for (let number = 0; number < count; number++) void callAgain(kind, number)
