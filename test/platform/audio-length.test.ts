import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/platform/clock.ts'
import { Cancellation } from '../../src/platform/loop/cancellation.ts'
import { AudioLengths, assumedBytesPerSecond } from '../../src/platform/media/audio-length.ts'
import { lyingRecordings } from '../harness/lying-recordings.ts'
import {
  amrCafOf,
  amrOf,
  flacOf,
  m4aOf,
  mp3Of,
  oggOpusOf,
  opusMp4Of,
  plainCafOf,
  threeGpOf,
  webmOf,
  webmWithPacket,
  wideThreeGpOf,
} from '../harness/recordings.ts'
import { wavOf } from '../harness/wav.ts'

const formats = [
  ['mp3', mp3Of, 'audio/mpeg'],
  ['flac', flacOf, 'audio/flac'],
  ['ogg', oggOpusOf, 'audio/ogg'],
  ['m4a', m4aOf, 'audio/mp4'],
  ['webm', webmOf, 'audio/webm'],
  ['webm from a browser', (seconds: number) => webmOf(seconds, true), 'audio/webm;codecs=opus'],
  ['wav', wavOf, 'audio/wav'],
  ['amr', amrOf, 'audio/amr'],
  ['amr wide', (seconds: number) => amrOf(seconds, true), 'audio/amr-wb'],
  ['3gp', threeGpOf, 'audio/3gpp'],
  ['3gp with wide amr', wideThreeGpOf, 'audio/3gpp'],
  ['mp4 with opus', opusMp4Of, 'audio/mp4'],
  ['caf with amr', amrCafOf, 'audio/x-caf'],
  ['caf', plainCafOf, 'audio/x-caf'],
] as const

/** Returns more audio data than the head of the file announces. */
function m4aData(count: number): Buffer {
  const data = Buffer.alloc(count + 8)
  data.writeUInt32BE(data.length)
  data.write('mdat', 4, 'latin1')
  return data
}

describe('the length of recordings', () => {
  const lengths = new AudioLengths(systemClock)
  const measure = (bytes: Buffer, contentType = '', filename = '') =>
    lengths.measure({ bytes, contentType, filename }, { orgId: 1, signal: new Cancellation() })

  test.each(formats)('%s: the length is counted in whole seconds, rounded up, whatever type the sender names', async (name, made, type) => {
    for (const [seconds, counted] of [
      [0.3, 1],
      [7.3, 8],
      [61, 61],
      [125.5, 126],
    ] as const) {
      const bytes = made(seconds)
      for (const [contentType, filename] of [
        [type, `talk.${name.slice(0, 4)}`],
        ['', ''],
        ['audio/wav', 'talk.wav'],
        ['audio/mpeg', 'talk.mp3'],
        ['application/octet-stream', 'blob'],
      ] as const)
        expect(await measure(bytes, contentType, filename), `${seconds} s as ${contentType}`).toMatchObject({ seconds: counted, isRead: true })
    }
  })

  test.each(formats)('%s with missing or changed bytes still gives a length, and the measuring thread continues', async (_name, made) => {
    const whole = made(20)
    for (const part of [1, 5, 13, 40, 100, 300, whole.length - 7]) {
      const { seconds } = await measure(whole.subarray(0, part))
      expect(seconds).toBeGreaterThanOrEqual(1)
      expect(seconds).toBeLessThanOrEqual(86_400)
    }
    for (let at = 4; at < Math.min(300, whole.length - 5); at += 23) {
      const changed = Buffer.from(whole)
      changed.fill(0xff, at, at + 5)
      expect((await measure(changed)).seconds).toBeLessThanOrEqual(86_400)
    }
    expect(await measure(wavOf(2.5))).toMatchObject({ seconds: 3, isRead: true })
  })

  test.each(lyingRecordings)('%s: a header that states too short a length does not shorten the result', async (_name, made) => {
    for (const seconds of [30, 200]) {
      const length = await measure(made(seconds))
      expect(length.seconds).toBeGreaterThanOrEqual(seconds - 1)
      expect(length.seconds).toBeLessThanOrEqual(seconds * 1.02 + 1)
      expect(length.isRead).toBe(true)
    }
  })

  test('a WAV file with an impossible rate counts at least the length that follows from its size', async () => {
    for (const rate of [1000, 4_000_000, 0]) {
      const file = wavOf(60)
      file.writeUInt32LE(rate, 24)
      const { seconds, isRead } = await measure(file)
      expect([seconds >= Math.ceil(file.length / assumedBytesPerSecond), isRead]).toMatchObject([true, false])
    }
  })

  test('formats that are not parsed count at least the length that follows from their size', async () => {
    // The head of a Core Audio file that announces one packet of one frame.
    const head = Buffer.alloc(52)
    head.write('caff', 0, 'latin1')
    expect((await measure(Buffer.concat([head, Buffer.alloc(50_000)]))).seconds).toBe(101)
  })

  test('a header that states less than the shortest possible length for that size is ignored', async () => {
    const file = Buffer.concat([flacOf(0.01), Buffer.alloc(10 * 768_000)])
    expect((await measure(file)).seconds).toBe(11)
    // Samples that are longer than any frame of AAC hold several frames, so the length follows from the size.
    expect(await measure(Buffer.concat([m4aOf(2), m4aData(20 * 64_000)]))).toMatchObject({ isRead: false, seconds: 2562 })
  })

  test('a false tag hides no sound, and all frames of a packet count', async () => {
    const sound = mp3Of(20)
    const tag = Buffer.from([0x49, 0x44, 0x33, 0xff, 0, 0, 0, 1, 0x70, 0])
    const counted = await measure(sound)
    expect((await measure(Buffer.concat([tag, sound]))).seconds).toBe(counted.seconds)
    expect((await measure(webmWithPacket('A_MPEG/L3', sound))).seconds).toBeGreaterThanOrEqual(counted.seconds - 1)
    expect((await measure(sound)).mostSeconds).toBeGreaterThanOrEqual(Math.floor(sound.length / assumedBytesPerSecond))
    // A packet of AAC that is longer than any frame holds several frames, so the length follows from the size.
    expect(await measure(webmWithPacket('A_AAC', Buffer.alloc(300), 10))).toMatchObject({ isRead: true, seconds: 2 })
    expect(await measure(webmWithPacket('A_AAC', Buffer.alloc(20_000), 10))).toMatchObject({ isRead: false, seconds: 401 })
  })

  test('the length of an unreadable file follows from its size', async () => {
    expect(await measure(Buffer.alloc(10 * assumedBytesPerSecond + 1))).toMatchObject({ seconds: 11, isRead: false })
    expect(await measure(Buffer.from('x'))).toMatchObject({ seconds: 1, isRead: false })
  })
})

describe('recordings that come together', () => {
  /** Makes timers that the test fires by hand, with their time in milliseconds. */
  const timers = () => {
    const due = new Map<() => void, number>()
    return {
      due,
      clock: {
        after(ms: number, fn: () => void) {
          due.set(fn, ms)
          return () => void due.delete(fn)
        },
      },
      fire(ms: number) {
        for (const [fn, after] of [...due]) if (after === ms) fn()
      },
    }
  }
  const file = { bytes: wavOf(3), contentType: '', filename: '' }
  const read = { seconds: 3, isRead: true }
  const refused = { errorName: 'places_taken' }
  const settled = (of: readonly Promise<unknown>[]) =>
    Promise.all(of.map(one => one.catch((error: { errorName?: string; message: string }) => ({ errorName: error.errorName ?? error.message }))))

  test('all recordings are measured, and those of several founders take turns', async () => {
    const lengths = new AudioLengths(systemClock)
    const order: number[] = []
    const send = async (orgId: number) => {
      const length = await lengths.measure(file, { orgId, signal: new Cancellation() })
      order.push(orgId)
      return length
    }
    const all = [...Array.from({ length: 60 }, () => send(1)), send(2)]
    expect(await Promise.all(all)).toMatchObject(all.map(() => read))
    expect(order.indexOf(2)).toBeLessThan(3)
  })

  test('a founder beyond its share is refused, and other founders are not', async () => {
    const lengths = new AudioLengths(systemClock, { founderOf: orgId => (orgId < 10 ? 'one' : 'other') })
    const send = (orgId: number) => lengths.measure(file, { orgId, signal: new Cancellation() })
    const own = Array.from({ length: 200 }, (_, at) => send(at % 10))
    const other = send(10)
    const results = await settled(own)
    expect(results.filter(result => 'seconds' in (result as object)).length).toBe(115)
    expect(results.at(-1)).toMatchObject(refused)
    expect(await other).toMatchObject(read)
    expect(await send(0)).toMatchObject(read)
  })

  test('recordings that are slow, or that wait too long, are refused and not guessed, and the next one is measured again', async () => {
    const { clock, due, fire } = timers()
    const lengths = new AudioLengths(clock)
    const send = () => lengths.measure(file, { orgId: 1, signal: new Cancellation() })
    const waiting = Array.from({ length: 16 }, send)
    fire(20_000)
    fire(5000)
    expect(await settled(waiting)).toMatchObject(waiting.map(() => refused))
    expect(await send()).toMatchObject(read)
    expect(due.size).toBe(0)
  })

  test('a recording whose sender has disconnected gives its place back', async () => {
    const { clock, due } = timers()
    const lengths = new AudioLengths(clock)
    const leaving = new Cancellation()
    const gone = Array.from({ length: 100 }, () => lengths.measure(file, { orgId: 1, signal: leaving }))
    const results = settled(gone)
    leaving.abort(new Error('left'))
    expect(await results).toMatchObject(gone.map(() => ({ errorName: 'left' })))
    const next = Array.from({ length: 100 }, () => lengths.measure(file, { orgId: 1, signal: new Cancellation() }))
    expect(await Promise.all(next)).toMatchObject(next.map(() => read))
    expect(due.size).toBe(0)
  })
})
