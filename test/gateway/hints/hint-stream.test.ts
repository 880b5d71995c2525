import { expect, test } from 'vitest'
import { HintStream, resetTopic, sameTopicMs, topicsMax } from '../../../src/gateway/hints/hint-stream.ts'
import type { StreamSink } from '../../../src/platform/loop/stream-sink.ts'
import type { SessionPrincipal } from '../../../src/platform/security/principal.ts'

const principal: SessionPrincipal = { kind: 'session', orgId: 1, userId: 1, role: 'owner', capabilities: [], email: 'a@b.test', sessionId: 's' }

/** A reader that takes bytes until the test stops it. */
class Reader implements StreamSink {
  isGone = false
  takesMore = true
  text = ''
  #wake: () => void = () => undefined
  push(bytes: Uint8Array): boolean {
    this.text += Buffer.from(bytes).toString()
    return this.takesMore
  }
  room(): Promise<void> {
    return new Promise(resolve => {
      this.#wake = resolve
    })
  }
  goOn(): void {
    this.takesMore = true
    this.#wake()
  }
  get topics(): string[] {
    return [...this.text.matchAll(/"topic":"([^"]+)"/g)].map(([, topic = '']) => topic)
  }
}

function opened(): { stream: HintStream; reader: Reader; over: Promise<void> } {
  const [stream, reader] = [new HintStream(principal), new Reader()]
  return { stream, reader, over: stream.pump(reader, () => undefined) }
}

test('a reader that takes nothing gets nothing, and at most 64 topics wait for it whatever the number of changes is', async () => {
  const { stream, reader } = opened()
  reader.takesMore = false
  stream.add('usage')
  stream.send(0)
  const before = reader.text
  for (let id = 0; id < 100_000; id++) stream.add(`agent:${id}`)
  expect(stream.hasWaiting).toBe(false)
  stream.send(10_000)
  expect(reader.text).toBe(before)
  reader.goOn()
  await Promise.resolve()
  await Promise.resolve()
  stream.send(10_000)
  expect(reader.topics.length).toBeLessThanOrEqual(1 + topicsMax)
  expect(reader.topics).toContain('agent')
})

test('a topic goes out at most once a second, and other topics do not wait for it', () => {
  const { stream, reader } = opened()
  stream.add('usage')
  stream.send(0)
  stream.add('usage')
  stream.add('key:1')
  stream.send(100)
  expect(reader.topics).toEqual(['usage', 'key:1'])
  expect(stream.isDue(sameTopicMs - 1)).toBe(false)
  stream.send(sameTopicMs)
  expect(reader.topics).toEqual(['usage', 'key:1', 'usage'])
})

test('a stream sends at most 64 topics in a second, and then families', () => {
  const { stream, reader } = opened()
  for (let at = 0; at < 10; at++) {
    for (let id = 0; id < 20; id++) stream.add(`key:${at * 20 + id}`)
    stream.send(at * 50)
  }
  expect(reader.topics.length).toBeLessThanOrEqual(topicsMax + 1)
  expect(reader.topics.at(-1)).toBe('key')
})

test('reset takes the place of everything that waits, and the end of a stream says why', async () => {
  const { stream, reader, over } = opened()
  stream.add('usage')
  stream.add(resetTopic)
  stream.add('key:1')
  stream.send(0)
  expect(reader.topics).toEqual([resetTopic])
  stream.end(true)
  stream.add('usage')
  stream.send(5_000)
  await over
  expect(reader.topics).toEqual([resetTopic, 'session'])
})
