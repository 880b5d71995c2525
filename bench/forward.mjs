/** The work of both passthroughs: they read the body, send it to the upstream, and pipe the reply. */
import { Agent, request } from 'undici'

const dispatcher = new Agent({ pipelining: 1 })

/** Returns a request listener that relays every call to the same path of `upstreamUrl`. */
export function forward(upstreamUrl) {
  return (incoming, response) => {
    const parts = []
    incoming.on('data', part => parts.push(part))
    incoming.on('end', () => {
      relay(upstreamUrl + incoming.url, Buffer.concat(parts), response).catch(error => {
        console.error(error.message)
        response.destroy()
      })
    })
  }
}

async function relay(url, body, response) {
  const reply = await request(url, { dispatcher, method: 'POST', headers: { 'content-type': 'application/json' }, body })
  const headers = { 'content-type': reply.headers['content-type'] }
  if (reply.headers['content-length'] !== undefined) headers['content-length'] = reply.headers['content-length']
  response.writeHead(reply.statusCode, headers)
  reply.body.on('error', () => response.destroy())
  response.on('close', () => reply.body.destroy())
  reply.body.pipe(response)
}
