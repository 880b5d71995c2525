import { Readable } from 'node:stream'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { decodedReply } from '../../../src/gateway/inference/replies/decoded-reply.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { StreamTurns } from '../../../src/platform/loop/stream-turns.ts'
import type { OutboundReply } from '../../../src/platform/outbound/upstream-body.ts'

/** Returns a reply with these bytes as its body. */
function replyOf(bytes: Buffer, encoding: string, turns = new StreamTurns(systemClock)): OutboundReply {
  const stream = Readable.from([bytes])
  const body = Object.assign(stream, {
    turns,
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

  test('each part of a decoded stream waits for the turn of its organisation', async () => {
    class CountedTurns extends StreamTurns {
      readonly orgIds: (number | null)[] = []
      override rest(orgId: number | null, goOn: () => void): void {
        this.orgIds.push(orgId)
        super.rest(orgId, goOn)
      }
    }
    const turns = new CountedTurns(systemClock)
    const events = Buffer.from('data: {}\n\n'.repeat(100_000))
    const parts: Uint8Array[] = []
    const end = await decodedReply(replyOf(gzipSync(events), 'gzip', turns), true).body.flow(part => {
      parts.push(part)
      return true
    }, 7)
    expect(end).toBe('ended')
    expect(Buffer.concat(parts).equals(events)).toBe(true)
    expect(turns.orgIds.length).toBe(parts.length)
    expect(new Set(turns.orgIds)).toEqual(new Set([7]))
    expect(Math.max(...parts.map(part => part.length))).toBeLessThanOrEqual(16 * 1024)
  })
})
