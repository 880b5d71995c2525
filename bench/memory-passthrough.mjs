/**
 * The memory API as a plain proxy, without access rules, budgets or an index: node:http and the AWS SDK. `node memory-passthrough.mjs <store as JSON>`
 * prints `listening <port>`.
 */
import { createServer } from 'node:http'
import { sdkClient } from './memory-client.mjs'

const store = sdkClient(JSON.parse(process.argv[2]))

const server = createServer((request, response) => {
  const key = decodeURIComponent(request.url.slice(request.url.indexOf('key=') + 4))
  const parts = []
  request.on('data', part => parts.push(part))
  request.on('end', () => {
    const work = request.method === 'GET' ? store.get(key) : store.put(key, Buffer.concat(parts)).then(() => '{"ok":true}')
    work.then(
      body => response.writeHead(200, { 'content-length': Buffer.byteLength(body) }).end(body),
      error => response.writeHead(502).end(error.message),
    )
  })
})
server.listen(0, '127.0.0.1', () => console.log(`listening ${server.address().port}`))
