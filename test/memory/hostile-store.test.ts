/** Stores that send invalid replies. The store of one organisation must not harm the gateway, which also serves other organisations. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { writtenMsOf } from '../../src/memory/provenance.ts'
import type { ObjectStoreError, ObjectStoreErrorKind } from '../../src/memory/stores/object-store.ts'
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

/** Sends the same text repeatedly until the other side disconnects. */
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

  test('the gateway stops reading an endless list after some megabytes', async () => {
    answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/xml' })
      response.write('<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated>')
      endlessly(response, entry('org-1/agents/a'))
    }
    expect(await kindOf(store.list({ prefix: 'org-1/' }))).toBe('unavailable')
    expect(sentBytes).toBeLessThan(boundBytes)
  })

  test('the gateway stops a copy of an endless object through itself', async () => {
    answer = (request, response) => {
      if (request.headers['x-amz-copy-source'] !== undefined) return void response.writeHead(501).end()
      response.writeHead(200, { etag: '"e"' })
      endlessly(response, 'x')
    }
    expect(await kindOf(store.copy('org-1/agents/a', 'org-1/.versions/b'))).toBe('too-large')
    expect(sentBytes).toBeLessThan(boundBytes)
  })

  test('HARD-04 copies through the gateway hold one object at a time in memory, with at most the maximum object size', async () => {
    const own = s3Store({ endpoint, bucket: 'memory', accessKey: 'A', secretKey: 'B', timeoutMs: 5_000, objectBytesMax: 1000 })
    let underWay = 0
    let mostUnderWay = 0
    const lengths = new Map([
      ['org-1/large', 1001],
      ['org-1/largest', 1000],
    ])
    answer = (request, response) => {
      if (request.headers['x-amz-copy-source'] !== undefined) return void response.writeHead(501).end()
      if (request.method !== 'GET') {
        underWay--
        return void response.writeHead(200, { etag: '"e"' }).end()
      }
      const length = lengths.get(new URL(request.url ?? '', endpoint).pathname.slice('/memory/'.length)) ?? 0
      if (length <= 1000) mostUnderWay = Math.max(mostUnderWay, ++underWay)
      response.writeHead(200, { etag: '"e"', 'content-length': length }).end(Buffer.alloc(length))
    }
    expect(await kindOf(own.copy('org-1/large', 'org-1/.versions/0'))).toBe('too-large')
    const kinds = await Promise.all(Array.from({ length: 20 }, (_, n) => kindOf(own.copy('org-1/largest', `org-1/.versions/${n}`))))
    expect(new Set(kinds)).toEqual(new Set(['ok']))
    expect(mostUnderWay).toBe(1)
    own.close()
  })

  test('a copy fails when it waits for its turn longer than the time limit of a reply', async () => {
    const own = s3Store({ endpoint, bucket: 'memory', accessKey: 'A', secretKey: 'B', timeoutMs: 300 })
    answer = (request, response) => {
      if (request.headers['x-amz-copy-source'] !== undefined) response.writeHead(501).end()
    }
    const kinds = await Promise.all([1, 2, 3].map(n => kindOf(own.copy('org-1/a', `org-1/.versions/${n}`))))
    expect(kinds.toSorted()).toEqual(['overloaded', 'overloaded', 'unavailable'])
    own.close()
  })
})

describe('invalid lists', () => {
  test('a list that repeats the same page is an error, not an endless call', async () => {
    listOf(entry('org-1/agents/a') + entry('org-1/agents/b'), true)
    expect(await store.list({ prefix: 'org-1/', limit: 2 })).toMatchObject({ next: 'org-1/agents/b' })
    expect(await kindOf(store.list({ prefix: 'org-1/' }))).toBe('unavailable')
    expect(await kindOf(store.list({ prefix: 'org-1/', startAfter: 'org-1/agents/b' }))).toBe('unavailable')
  })

  const sizeBytes = 1_190_000
  const filled = (part: string): string => part.repeat(Math.floor(sizeBytes / part.length))
  const beside = (text: string) => `<Name>${text}</Name>`
  const heavy: Readonly<Record<string, string>> = {
    escapes: beside(filled('&amp;')),
    'bare ampersands': beside(filled('&')),
    'numbered escapes': beside(filled('&#x41;')),
    'empty elements': filled('<a/>'),
    'elements with a text each': filled('<a>x</a>'),
    'elements with an escape each': filled('<a>&amp;</a>'),
    nesting: filled('<a>'),
    comments: filled('<!--x-->'),
    'raw texts': beside(filled('<![CDATA[x]]>')),
    'prefixes of its own': filled('<CommonPrefixes><Prefix>a</Prefix></CommonPrefixes>'),
    'attributes of one element': `<a ${Array.from({ length: 100_000 }, (_, n) => `a${n}="1"`).join(' ')}/>`,
    'attributes of many elements': filled('<a b="&amp;"/>'),
    'an element without an end': filled('<a '),
    'one entry with many elements': `<Contents><Key>org-1/a</Key>${filled('<a/>')}</Contents>`,
    'entries of many elements': `<Contents><Key>org-1/a</Key>${'<a/>'.repeat(280)}</Contents>`.repeat(1_000),
    'entries of many escapes': `<Contents><Key>org-1/a</Key><a>${'&#9;'.repeat(280)}</a></Contents>`.repeat(1_000),
  }
  test.each(Object.entries(heavy))('HARD-04 a list whose parsing would block the process is refused before it is parsed: %s', async (_name, contents) => {
    listOf(contents)
    await expect(store.list({ prefix: 'org-1/' })).rejects.toMatchObject({ kind: 'unavailable', message: expect.stringMatching(/^the store sent .*more than/) })
  })

  test('a full page with all fields of each entry is accepted, and so is a key that consists of escapes', async () => {
    const owner = '<Owner><ID>0123456789abcdef</ID><DisplayName>some&amp;body</DisplayName></Owner>'
    const more = `<StorageClass>STANDARD</StorageClass><ChecksumAlgorithm>CRC64NVME</ChecksumAlgorithm><ChecksumType>FULL_OBJECT</ChecksumType>${owner}</Contents>`
    const name = (n: number): string => `org-1/agents/a=${n}/${'&amp;'.repeat(20)}`
    listOf(Array.from({ length: 1_000 }, (_, n) => entry(name(n)).replace('</Contents>', more)).join('\n  '))
    expect((await store.list({ prefix: 'org-1/' })).objects).toHaveLength(1_000)
    listOf(entry(`org-1/${'&quot;'.repeat(1_000)}`))
    expect((await store.list({ prefix: 'org-1/', limit: 1 })).objects[0]?.key).toBe(`org-1/${'"'.repeat(1_000)}`)
  })

  test('folders of a list count as entries, are below the prefix, and are ignored when nobody asked for folders', async () => {
    const folder = (name: string): string => `<CommonPrefixes><Prefix>${name}</Prefix></CommonPrefixes>`
    const byFolder = (limit = 1000) => store.list({ prefix: 'org-1/', byFolder: true, limit })
    listOf(entry('org-1/b') + folder('org-1/a/'))
    expect(await byFolder()).toMatchObject({ objects: [{ key: 'org-1/b' }], folders: ['org-1/a/'], next: null })
    expect((await store.list({ prefix: 'org-1/' })).folders).toBeUndefined()
    expect(await kindOf(byFolder(1))).toBe('unavailable')
    for (const wrong of ['org-2/a/', 'org-1/a', '', `org-1/${'a'.repeat(1_100)}/`]) {
      listOf(folder(wrong))
      expect(await kindOf(byFolder()), wrong).toBe('unavailable')
    }
    listOf(folder('org-1/a/'), true)
    expect(await kindOf(byFolder())).toBe('unavailable')
    listOf(Array.from({ length: 1001 }, (_, n) => folder(`org-1/${n}/`)).join(''))
    expect(await kindOf(byFolder())).toBe('unavailable')
  })

  test('etags and sizes that cannot be stored or sent are ignored', async () => {
    listOf(entry('org-1/agents/a', 'x&#13;&#10;set-cookie: y') + entry('org-1/agents/b', '&quot;\u6f22&quot;', '-5') + entry('org-1/agents/c', 'good', '7'))
    const { objects } = await store.list({ prefix: 'org-1/' })
    expect(objects.map(({ etag, sizeBytes }) => [etag, sizeBytes])).toEqual([
      [expect.stringMatching(/^"\d+-1"$/), 1],
      [expect.stringMatching(/^"\d+-0"$/), 0],
      ['"good"', 7],
    ])
  })
})

test('an object time that no database accepts is ignored', () => {
  const head = { etag: '"e"', sizeBytes: 1, modifiedMs: 5 }
  for (const stamp of ['-271821-04-20T00:00:00Z', '+275760-09-13T00:00:00Z']) expect(writtenMsOf({ ...head, metadata: { 'br-ts': stamp } })).toBe(0)
  expect(writtenMsOf({ ...head, metadata: { 'br-ts': 'nonsense' } })).toBe(5)
})
