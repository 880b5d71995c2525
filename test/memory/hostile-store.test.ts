/** Stores that answer what no store should: one organisation's own server must not harm the gateway that serves the others as well. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import type { ObjectStoreError, ObjectStoreErrorKind } from '../../src/memory/object-store.ts'
import { writtenMsOf } from '../../src/memory/provenance.ts'
import { s3Store } from './stores.ts'

let answer: (request: IncomingMessage, response: ServerResponse) => void = () => {}
const server = createServer((request, response) => {
  request.resume()
  answer(request, response)
})
await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
const store = s3Store({ endpoint, bucket: 'memory', accessKey: 'A', secretKey: 'B', timeoutMs: 5_000 })

afterAll(() => {
  store.close()
  server.close()
  server.closeAllConnections()
})

beforeEach(() => {
  sentBytes = 0
})

let sentBytes = 0

/** Sends the same over and over until the other side goes away. */
function endlessly(response: ServerResponse, text: string): void {
  const part = Buffer.from(text.repeat(Math.ceil(65_536 / text.length)))
  const more = (): void => {
    if (response.destroyed) return
    sentBytes += part.length
    if (response.write(part)) setImmediate(more)
    else response.once('drain', more)
  }
  more()
}

async function kindOf(call: Promise<unknown>): Promise<ObjectStoreErrorKind | 'ok'> {
  return call.then(
    () => 'ok' as const,
    (error: ObjectStoreError) => error.kind,
  )
}

function listOf(contents: string, isTruncated = false): void {
  answer = (_request, response) =>
    response
      .writeHead(200, { 'content-type': 'application/xml' })
      .end(`<?xml version="1.0"?><ListBucketResult><IsTruncated>${isTruncated}</IsTruncated>${contents}</ListBucketResult>`)
}

const entry = (key: string, etag = '&quot;e&quot;', size = '1'): string =>
  `<Contents><Key>${key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>${etag}</ETag><Size>${size}</Size></Contents>`

describe('endless replies', () => {
  const boundBytes = 32 * 1024 * 1024

  test('a list that does not end is left after some megabytes', async () => {
    answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/xml' })
      response.write('<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated>')
      endlessly(response, entry('org-1/agents/a'))
    }
    expect(await kindOf(store.list({ prefix: 'org-1/' }))).toBe('unavailable')
    expect(sentBytes).toBeLessThan(boundBytes)
  })

  test('an object that does not end is not copied through the gateway for ever', async () => {
    answer = (request, response) => {
      if (request.headers['x-amz-copy-source'] !== undefined) return void response.writeHead(501).end()
      response.writeHead(200, { etag: '"e"' })
      endlessly(response, 'x')
    }
    expect(await kindOf(store.copy('org-1/agents/a', 'org-1/.versions/b'))).toBe('too-large')
    expect(sentBytes).toBeLessThan(4 * boundBytes)
  })
})

describe('lists of nonsense', () => {
  test('a list that says the same page again and again is an error, not a call without an end', async () => {
    listOf(entry('org-1/agents/a') + entry('org-1/agents/b'), true)
    expect(await store.list({ prefix: 'org-1/' })).toMatchObject({ next: 'org-1/agents/b' })
    expect(await kindOf(store.list({ prefix: 'org-1/', startAfter: 'org-1/agents/b' }))).toBe('unavailable')
  })

  test('etags and sizes that nobody could keep or send on are not taken over', async () => {
    listOf(entry('org-1/agents/a', 'x&#13;&#10;set-cookie: y') + entry('org-1/agents/b', '&quot;\u6f22&quot;', '-5') + entry('org-1/agents/c', 'good', '7'))
    const { objects } = await store.list({ prefix: 'org-1/' })
    expect(objects.map(({ etag, sizeBytes }) => [etag, sizeBytes])).toEqual([
      [expect.stringMatching(/^"\d+-1"$/), 1],
      [expect.stringMatching(/^"\d+-0"$/), 0],
      ['"good"', 7],
    ])
  })
})

test('a time that no database takes is none', () => {
  const head = { etag: '"e"', sizeBytes: 1, modifiedMs: 5 }
  for (const stamp of ['-271821-04-20T00:00:00Z', '+275760-09-13T00:00:00Z']) expect(writtenMsOf({ ...head, metadata: { 'br-ts': stamp } })).toBe(0)
  expect(writtenMsOf({ ...head, metadata: { 'br-ts': 'nonsense' } })).toBe(5)
})
