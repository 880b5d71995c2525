/** The store of one organisation sends invalid replies, while another organisation has a normal store. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp, type TestReply, until } from '../harness/app.ts'
import { type S3TestServer, startS3Server } from '../harness/s3-server.ts'

type Answer = (response: ServerResponse, query: URLSearchParams) => void

let app: TestApp
let evil: S3TestServer
let good: S3TestServer
let owner: { orgId: number; key: string }
let sentBytes = 0
const secretWords = 'of-the-store-itself'

beforeAll(async () => {
  evil = await startS3Server()
  good = await startS3Server()
  const port = evil.hostPort.split(':')[1]
  app = await startApp({ env: { OUTBOUND_ALLOW: `${evil.hostPort},localhost:${port},${good.hostPort}`, STORE_TIMEOUT_MS: '1000' } })
  expect((await configure(app.key, good)).status).toBe(200)
  expect((await app.call('PUT', o('agents/honest'), 'honest')).status).toBe(200)
}, 60_000)
afterAll(async () => {
  await app?.stop()
  await evil?.close()
  await good?.close()
})
afterEach(() => {
  evil.faults.answer = null
  evil.objects.clear()
})

const o = (key: string): string => `/v1/me/memory/o?key=${encodeURIComponent(key)}`
const configure = (token: string, server: S3TestServer, more: object = {}): Promise<TestReply> =>
  app.call(
    'PUT',
    '/v1/me/memory-store',
    { endpoint: server.endpoint, bucket: server.bucket, access_key: server.accessKey, secret_key: server.secretKey, ...more },
    { token },
  )
let named = 0

/** Creates an organisation on the store that will send invalid replies. */
async function newOwner(): Promise<void> {
  owner = await app.otherOrg(`Evil ${++named}`)
  expect((await configure(owner.key, evil)).status).toBe(200)
}

/** Lets `answer` reply to every list of more than one entry. A probe of the gateway requests one entry and gets a normal reply. */
function onLists(answer: Answer): void {
  evil.faults.answer = (request, response, url) => {
    if (request.method !== 'GET' || url.searchParams.get('list-type') !== '2' || url.searchParams.get('max-keys') === '1') return false
    answer(response, url.searchParams)
    return true
  }
}

function onObjects(method: string, answer: (request: IncomingMessage, response: ServerResponse) => void): void {
  evil.faults.answer = (request, response, url) => {
    if (request.method !== method || url.searchParams.has('list-type')) return false
    answer(request, response)
    return true
  }
}

const xml = (response: ServerResponse, text: string): void => void response.writeHead(200, { 'content-type': 'application/xml' }).end(text)
const list = (contents: string, isTruncated = false): string =>
  `<?xml version="1.0"?><ListBucketResult><IsTruncated>${isTruncated}</IsTruncated>${contents}</ListBucketResult>`
const entry = (key: string, size = 1): string => `<Contents><Key>${key}</Key><ETag>&quot;e&quot;</ETag><Size>${size}</Size></Contents>`
const keyAt = (number: number): string => `org-${owner.orgId}/agents/${String(number).padStart(9, '0')}`
/** Returns the next page, with the requested number of entries. */
const nextPage = (query: URLSearchParams, count = Number(query.get('max-keys'))): string => {
  const after = Number(/(\d{9})$/.exec(query.get('start-after') ?? '')?.[1] ?? 0)
  return list(Array.from({ length: count }, (_, n) => entry(keyAt(after + n + 1))).join(''), true)
}

/** Sends the same text until the other side disconnects. */
function endlessly(send: (text: string) => boolean, isGone: () => boolean, onDrain: (go: () => void) => void, text: string): void {
  const part = text.repeat(Math.ceil(16_384 / text.length))
  const more = (): void => {
    if (isGone()) return
    sentBytes += part.length
    if (send(part)) setImmediate(more)
    else onDrain(more)
  }
  more()
}

const endlessBody = (response: ServerResponse, text: string): void =>
  endlessly(
    part => response.write(part),
    () => response.destroyed,
    go => void response.once('drain', go),
    text,
  )

/** Runs reads of the organisation with the normal store one after the other while the work runs. Returns the results of the reads. */
async function besideHonestReads<T>(work: Promise<T>): Promise<{ value: T; reads: Set<string> }> {
  let isOver = false
  const reads = new Set<string>()
  const reading = (async () => {
    do {
      const read = await app.call('GET', o('agents/honest'))
      const listed = await app.call('GET', '/v1/me/memory/list?limit=5')
      reads.add(`${read.status} ${read.text} ${listed.status} ${listed.json?.keys?.length}`)
    } while (!isOver)
  })()
  const value = await work.finally(() => {
    isOver = true
  })
  await reading
  return { value, reads }
}

// A list by author reads no store.
const listCalls = ['list', 'list?limit=10', 'list?prefix=agents/&limit=10', 'search?q=x']
const codesOf = (replies: readonly TestReply[]): string[] => replies.map(({ status, json }) => `${status} ${json?.error?.code}`)

const attacks: readonly (readonly [what: string, answer: Answer])[] = [
  ['a page with more entries than requested', response => xml(response, list(Array.from({ length: 1_500 }, (_, n) => entry(keyAt(n + 1))).join('')))],
  [
    'entries without an end',
    response => {
      response.writeHead(200, { 'content-type': 'application/xml' })
      response.write('<?xml version="1.0"?><ListBucketResult>')
      endlessBody(response, entry(keyAt(1)))
    },
  ],
  [
    'one element without an end',
    response => {
      response.writeHead(200, { 'content-type': 'application/xml' })
      response.write('<?xml version="1.0"?><ListBucketResult><Contents><Key>')
      endlessBody(response, 'x')
    },
  ],
  ['nested elements in the entries', response => xml(response, list('<a>'.repeat(1_500) + '</a>'.repeat(1_500) + '<a>'.repeat(1_500)))],
  [
    'entities of its own',
    response =>
      xml(response, `<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "${'a'.repeat(500)}"><!ENTITY b "${'&a;'.repeat(500)}">]>${list(entry('&b;')).slice(21)}`),
  ],
  ['an invalid key', response => xml(response, list(entry(keyAt(1) + 'k'.repeat(2_000))))],
  [
    'one byte after the other',
    response => {
      response.writeHead(200, { 'content-type': 'application/xml' })
      const timer = setInterval(() => response.write(' '), 200)
      response.once('close', () => clearInterval(timer))
    },
  ],
  [
    'headers without an end',
    response => {
      const { socket } = response
      if (socket === null) return
      socket.write('HTTP/1.1 200 OK\r\n')
      endlessly(
        part => socket.write(part),
        () => socket.destroyed,
        go => void socket.once('drain', go),
        'x-more: of it\r\n',
      )
    },
  ],
]

describe('HARD-04 a store with hostile lists', () => {
  test.each(attacks)(
    'HARD-04 %s: the call fails after a bounded number of bytes, and other organisations are not affected',
    async (_what, answer) => {
      await newOwner()
      onLists(answer)
      sentBytes = 0
      const { value, reads } = await besideHonestReads(
        Promise.all([
          Promise.all(listCalls.map(path => app.call('GET', `/v1/me/memory/${path}`, undefined, { token: owner.key }))),
          configure(owner.key, evil, { endpoint: evil.endpoint.replace('127.0.0.1', 'localhost'), confirm_path_change: true }),
        ]),
      )
      expect([...new Set(codesOf(value[0]))]).toEqual(['502 memory_store_failed'])
      expect(codesOf([value[1]])).toEqual(['400 unavailable'])
      expect([...reads]).toEqual(['200 honest 200 1'])
      // Five calls, each with the content of the buffers of two sockets.
      expect(sentBytes).toBeLessThan(40 * 1024 * 1024)
      const compared = await app.call('POST', '/v1/me/memory/reconcile', undefined, { token: owner.key })
      expect(codesOf([compared])).toEqual(['502 memory_store_failed'])
    },
    60_000,
  )

  test.each([
    ['one key', (query: URLSearchParams) => nextPage(query, 1)],
    ['no key', () => list('<NextContinuationToken>more</NextContinuationToken>', true)],
  ])(
    'HARD-04 a list in pages of %s ends with an error that says so, after few replies',
    async (_what, page) => {
      await newOwner()
      onLists((response, query) => xml(response, page(query)))
      for (const path of ['list', 'list?limit=100', 'search?q=x']) {
        const before = evil.requests.length
        const reply = await app.call('GET', `/v1/me/memory/${path}`, undefined, { token: owner.key })
        expect([codesOf([reply]), reply.json.error.message]).toEqual([
          ['502 memory_store_failed'],
          expect.stringMatching(/smaller pages than the gateway asks for/),
        ])
        expect(evil.requests.length - before).toBeLessThanOrEqual(25)
      }
      const before = evil.requests.length
      const compared = await app.call('POST', '/v1/me/memory/reconcile', undefined, { token: owner.key })
      expect([codesOf([compared]), compared.json.error.message]).toEqual([['502 memory_store_failed'], expect.stringMatching(/smaller pages/)])
      expect(evil.requests.length - before).toBeLessThanOrEqual(25)
    },
    60_000,
  )

  test('HARD-04 a store that sends some short and empty pages is listed to its end', async () => {
    await newOwner()
    onLists((response, query) => {
      const token = query.get('continuation-token')
      if (query.get('start-after') === null && token === null) xml(response, list(entry(keyAt(1)), true))
      else if (token === null) xml(response, list('<NextContinuationToken>more</NextContinuationToken>', true))
      else xml(response, list(token === 'more' ? entry(keyAt(2)) + entry(keyAt(3)) : ''))
    })
    const { status, json } = await app.call('GET', '/v1/me/memory/list?prefix=agents/', undefined, { token: owner.key })
    expect([status, json.keys.map(({ key }: { key: string }) => key)]).toEqual([200, [1, 2, 3].map(at => keyAt(at).replace(/^org-\d+\//, ''))])
  }, 60_000)

  test('HARD-04 endless pages stop at the number of objects that can be taken over, and lists stop at the size of one reply', async () => {
    await newOwner()
    onLists((response, query) => xml(response, nextPage(query)))
    const before = evil.requests.length
    const { value, reads } = await besideHonestReads(
      configure(owner.key, evil, { endpoint: evil.endpoint.replace('127.0.0.1', 'localhost'), confirm_path_change: true }),
    )
    expect([value.status, value.json.error.code, value.json.error.message]).toEqual([400, 'unavailable', expect.stringMatching(/more than 100000 objects/)])
    expect(evil.requests.length - before).toBeLessThan(130)
    const listed = await app.call('GET', '/v1/me/memory/list', undefined, { token: owner.key })
    expect([listed.status, listed.json.error.message]).toEqual([400, expect.stringMatching(/pages with limit/)])
    expect([...reads]).toEqual(['200 honest 200 1'])
    expect((await app.call('GET', '/v1/me/memory-store', undefined, { token: owner.key })).json).toMatchObject({ endpoint: evil.endpoint, bytes_used: 0 })
  }, 120_000)

  test('HARD-04 a store that already contains more bytes than the quota cannot be configured, and the error says what to do', async () => {
    await newOwner()
    onLists(response => xml(response, list(entry(keyAt(1), 3 * 1024 * 1024))))
    const moved = { endpoint: evil.endpoint.replace('127.0.0.1', 'localhost'), confirm_path_change: true }
    const refused = await configure(owner.key, evil, { ...moved, quota_mb: 2 })
    expect([refused.status, refused.json.error.message]).toEqual([400, expect.stringMatching(/more bytes than quota_mb allows\. Raise quota_mb/)])
    expect((await configure(owner.key, evil, { ...moved, quota_mb: 4 })).status).toBe(200)
    expect((await app.call('GET', '/v1/me/memory-store', undefined, { token: owner.key })).json).toMatchObject({ bytes_used: 3 * 1024 * 1024 })
  })

  test('HARD-04 work on a store with slow pages ends at its time limit, and an organisation can run one such job at a time', async () => {
    await newOwner()
    let pages = 0
    onLists((response, query) => {
      pages++
      const timer = setTimeout(() => xml(response, nextPage(query)), 600)
      response.once('close', () => clearTimeout(timer))
    })
    const moved = { endpoint: evil.endpoint.replace('127.0.0.1', 'localhost'), confirm_path_change: true }
    const slow = configure(owner.key, evil, moved)
    const slowList = app.call('GET', '/v1/me/memory/list', undefined, { token: owner.key })
    await until(() => pages > 2)
    const second = await configure(owner.key, evil, moved)
    expect([second.status, second.json.error.code, second.headers.get('retry-after')]).toEqual([409, 'memory_conflict', '5'])
    expect((await app.call('POST', '/v1/me/memory/reconcile', undefined, { token: owner.key })).status).toBe(409)
    const { value, reads } = await besideHonestReads(slow)
    expect([value.status, value.json.error.message]).toEqual([400, expect.stringMatching(/more than the 30 s/)])
    expect(codesOf([await slowList])).toEqual(['502 memory_store_failed'])
    expect([...reads]).toEqual(['200 honest 200 1'])
  }, 60_000)
})

describe('HARD-04 a store with hostile objects', () => {
  const raw = (response: ServerResponse, text: string): void => void response.socket?.end(text)
  const read = (): Promise<TestReply> => app.call('GET', o('agents/a'), undefined, { token: owner.key })

  test.each<readonly [string, (response: ServerResponse) => void, readonly string[]]>([
    ['more bytes than it announced', response => raw(response, `HTTP/1.1 200 OK\r\netag: "e"\r\ncontent-length: 3\r\n\r\nabc${'x'.repeat(9)}`), ['200', '502']],
    ['fewer bytes than it announced', response => raw(response, 'HTTP/1.1 200 OK\r\netag: "e"\r\ncontent-length: 30\r\n\r\nabc'), ['502']],
    ['an endless body', response => endlessBody(response.writeHead(200, { etag: '"e"' }), 'x'), ['413']],
    ['an impossible length', response => raw(response, 'HTTP/1.1 200 OK\r\netag: "e"\r\ncontent-length: 90071992547409939\r\n\r\n'), ['502']],
    ['nothing', () => undefined, ['502']],
  ])('HARD-04 an object with %s: the read ends with an error that says so, and other callers can still read', async (_what, answer, statuses) => {
    await newOwner()
    await app.call('PUT', o('agents/a'), 'abc', { token: owner.key })
    onObjects('GET', (_request, response) => answer(response))
    const { value, reads } = await besideHonestReads(read())
    expect(statuses).toContain(String(value.status))
    if (value.status === 200) expect(value.text).toBe('abc')
    expect([...reads]).toEqual(['200 honest 200 1'])
  })

  test('HARD-04 a HEAD with a wrong length fails only the comparison of that store, and no error repeats text of the store', async () => {
    await newOwner()
    evil.put(`org-${owner.orgId}/agents/a`, 'by hand')
    onObjects('HEAD', (_request, response) => raw(response, 'HTTP/1.1 200 OK\r\netag: "e"\r\ncontent-length: 90071992547409939\r\n\r\n'))
    const compared = await app.call('POST', '/v1/me/memory/reconcile', undefined, { token: owner.key })
    expect(codesOf([compared])).toEqual(['502 memory_store_failed'])
    onObjects('GET', (_request, response) =>
      response.writeHead(500, { 'content-type': 'application/xml' }).end(`<Error><Code>Odd</Code><Message>${secretWords}</Message></Error>`),
    )
    const failed = await read()
    expect([failed.status, failed.text.includes(secretWords)]).toEqual([502, false])
  })
})
