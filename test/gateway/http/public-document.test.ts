import { expect, test } from 'vitest'
import { PublicDocument } from '../../../src/gateway/http/documents/public-document.ts'

test('a public document is made once for each base URL, for any number of readers', () => {
  const made: string[] = []
  const document = new PublicDocument(baseUrl => {
    made.push(baseUrl)
    return `at ${baseUrl}`
  })
  const replies = Array.from({ length: 100 }, (_, n) => document.reply('http://a', n % 2 === 0 ? undefined : '"other"', 'text/plain', {}))
  expect(made).toEqual(['http://a'])
  expect(new Set(replies.map(reply => reply.headers['etag'])).size).toBe(1)
  expect(document.reply('http://b', replies[0]?.headers['etag'], 'text/plain', {}).status).toBe(200)
  expect(made).toEqual(['http://a', 'http://b'])
})
