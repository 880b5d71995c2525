/** The fastest possible proxy in Node: node:http and undici with nothing between them. `node passthrough.mjs <upstream url>` prints `listening <port>`. */
import { createServer } from 'node:http'
import { forward } from './forward.mjs'

const server = createServer({ keepAliveTimeout: 600_000 }, forward(process.argv[2]))
server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => console.log(`listening ${server.address().port}`))
