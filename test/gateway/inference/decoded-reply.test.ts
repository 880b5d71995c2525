import { Readable } from 'node:stream'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { decodedReply } from '../../../src/gateway/inference/replies/decoded-reply.ts'
import type { OutboundReply } from '../../../src/platform/outbound/upstream-body.ts'

/** Returns a reply with these bytes as its body. */
function replyOf(bytes: Buffer, encoding: string): OutboundReply {
  const stream = Readable.from([bytes])
  const body = Object.assign(stream, {
    arrived: () => null,
    buffer: () => bytes,
    nudge: () => undefined,
    detachSignal: () => undefined,
  }) as unknown as OutboundReply['body']
  return { status: 200, headers: { 'content-encoding': encoding }, body }
}

describe('a compressed reply', () => {
  test('a brotli reply of a user server is refused, because its window takes 16 MB for each stream', async () => {
    expect(String(await decodedReply(replyOf(gzipSync('hello'), 'gzip'), true).body.buffer(1000))).toBe('hello')
    expect(() => decodedReply(replyOf(brotliCompressSync('hello'), 'br'), true)).toThrow('cannot be read')
  })

  test('a brotli reply of a provider that the operator configured is read', async () => {
    expect(String(await decodedReply(replyOf(brotliCompressSync('hello'), 'br')).body.buffer(1000))).toBe('hello')
  })
})
