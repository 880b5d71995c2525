// Receives webhooks of the gateway. It checks that the gateway sent them, and handles each delivery once. It needs only Node.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'

const { WEBHOOK_SECRET, HOST = '127.0.0.1', PORT = '9000' } = process.env
if (!WEBHOOK_SECRET) {
  console.error('Set WEBHOOK_SECRET to the secret that the gateway has shown when the endpoint was made.')
  process.exit(2)
}
const toleranceS = 300
const bodyMaxBytes = 1024 * 1024

// Ids of handled deliveries, here only in memory. If your program restarts or runs several times, store each id in the same transaction as the result of
// its delivery.
const handled = new Set()

// Put the work of your program here. When it throws, the gateway sends the delivery again.
async function handle({ id, type, data }) {
  console.log(`handled ${type} ${id} ${JSON.stringify(data)}`)
}

// Check the bytes as they arrived. JSON that was parsed and written again would have another signature.
function isGenuine(header, body) {
  const [, t, v1] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(header ?? '') ?? []
  if (t === undefined || Math.abs(Date.now() / 1000 - Number(t)) > toleranceS) return false
  const expected = createHmac('sha256', WEBHOOK_SECRET).update(`${t}.`).update(body).digest()
  return timingSafeEqual(Buffer.from(v1, 'hex'), expected)
}

async function bodyOf(request) {
  const parts = []
  let bytes = 0
  for await (const part of request) {
    bytes += part.length
    if (bytes > bodyMaxBytes) return null
    parts.push(part)
  }
  return Buffer.concat(parts)
}

async function receive(request) {
  if (request.method !== 'POST') return 405
  const body = await bodyOf(request)
  if (body === null) return 413
  if (!isGenuine(request.headers['x-br-signature'], body)) {
    console.log('refused: the signature is wrong or old')
    return 401
  }
  const delivery = request.headers['x-br-delivery-id']
  if (handled.has(delivery)) {
    console.log(`seen before: ${delivery}`)
    return 204
  }
  await handle(JSON.parse(body))
  handled.add(delivery)
  return 204
}

const server = createServer((request, response) => {
  receive(request).then(
    status => response.writeHead(status, status === 413 ? { connection: 'close' } : {}).end(),
    error => {
      console.error(`failed: ${error.message}`)
      response.writeHead(500).end()
    },
  )
})
server.listen(Number(PORT), HOST, () => console.log(`listens at http://${HOST}:${server.address().port}`))
process.on('SIGTERM', () => server.close())
process.on('SIGINT', () => server.close())
