/**
 * The passthrough of passthrough.mjs as one route of an express app, for every request under /v1. `node express-passthrough.mjs <upstream url>` prints
 * `listening <port>`.
 */
import { createServer } from 'node:http'
import express from 'express'
import { forward } from './forward.mjs'

const app = express()
app.disable('x-powered-by')
app.post('/v1/{*path}', forward(process.argv[2]))
const server = createServer({ keepAliveTimeout: 600_000 }, app)
server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => console.log(`listening ${server.address().port}`))
