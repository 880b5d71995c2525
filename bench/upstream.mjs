/**
 * The fake provider of the bench: a keep-alive server with the API of OpenAI that does as little work as possible. A plain call gets one fixed reply of 300
 * tokens. `stream: true` gets `--chunks` chunks in bursts, as fast as the reader takes them. The model `bench-slow` sends `--slow-chunks` chunks, one after
 * each `--slow-interval-ms`. It prints `listening <port>`.
 */
import { createServer } from 'node:http'
import { parseArgs } from 'node:util'
import { usage } from './workload.mjs'

const { values } = parseArgs({ options: { chunks: { type: 'string' }, 'slow-chunks': { type: 'string' }, 'slow-interval-ms': { type: 'string' } } })
const [chunks, slowChunks, slowIntervalMs] = [values.chunks, values['slow-chunks'], values['slow-interval-ms']].map(Number)

const head = { id: 'chatcmpl-bench', created: 1_760_000_000, model: 'bench' }
const content = 'word '.repeat(240)
const plain = Buffer.from(
  JSON.stringify({ ...head, object: 'chat.completion', choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }], usage }),
)
const eventOf = fields => `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', ...fields })}\n\n`
const deltaEvent = Buffer.from(eventOf({ choices: [{ index: 0, delta: { role: 'assistant', content: 'a few words ' }, finish_reason: null }] }))
const burst = 11
const burstOfDeltas = Buffer.concat(Array(burst).fill(deltaEvent))
const stopEvent = eventOf({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
const doneEvent = 'data: [DONE]\n\n'
const lastEvents = Buffer.from(stopEvent + doneEvent)
// As a real provider does, it sends the usage of a stream only to callers that request it.
const lastEventsWithUsage = Buffer.from(stopEvent + eventOf({ choices: [], usage }) + doneEvent)

/**
 * Sends the first chunk alone, and then `burst` chunks with each write. It makes one write in each turn of the event loop, and waits for a slow reader.
 * With one write for each chunk, the bench would mostly measure the kernel's work for this process and the load generator, not the gateway's work.
 */
function streamFast(response, last) {
  let left = chunks - 1
  const next = () => {
    if (response.destroyed) return
    if (left <= 0) return void response.end(last)
    const isRoomLeft = response.write(left >= burst ? burstOfDeltas : deltaEvent)
    left -= left >= burst ? burst : 1
    if (isRoomLeft) setImmediate(next)
    else response.once('drain', next)
  }
  response.write(deltaEvent)
  setImmediate(next)
}

let slowStarted = 0

/**
 * Sends the first chunk immediately, and the others at a fixed interval. Different streams send at different moments of the interval, like those of
 * independent users.
 */
function streamSlow(response, last) {
  let left = slowChunks - 1
  response.write(deltaEvent)
  slowStarted += 1
  let timer = setTimeout(
    () => {
      timer = setInterval(() => {
        if (left > 0) response.write(deltaEvent)
        else response.end(last)
        left -= 1
      }, slowIntervalMs)
    },
    ((slowStarted % 100) / 100) * slowIntervalMs,
  )
  response.once('close', () => {
    clearTimeout(timer)
    clearInterval(timer)
  })
}

const server = createServer({ keepAliveTimeout: 600_000 }, (request, response) => {
  const parts = []
  request.on('data', part => parts.push(part))
  request.on('end', () => {
    const asked = JSON.parse(Buffer.concat(parts).toString())
    if (asked.stream !== true) {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': plain.length })
      response.end(plain)
      return
    }
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
    const last = asked.stream_options?.include_usage === true ? lastEventsWithUsage : lastEvents
    if (asked.model === 'bench-slow') streamSlow(response, last)
    else streamFast(response, last)
  })
})
server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => console.log(`listening ${server.address().port}`))
