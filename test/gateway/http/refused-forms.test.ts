/** A refused form may stay on its connection for minutes. The process then keeps none of its bytes. */
import { connect, type Socket } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { until } from '../../harness/until.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
const MiB = 1024 * 1024
const piece = Buffer.alloc(MiB, 'x')
const fileBytes = 12 * MiB
const forms = 4

/** The bytes of buffers that live now, without what no object refers to. */
async function liveBytes(): Promise<number> {
  for (let times = 0; times < 3; times++) {
    collect()
    await new Promise(resolve => setImmediate(resolve))
  }
  return process.memoryUsage().arrayBuffers
}

describe('a form that is refused while it arrives', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp()
  })
  afterAll(() => app.stop())

  /** Sends a form with a file, then with `end`, which is refused, and leaves the connection open. */
  async function refused(end: string): Promise<{ readonly socket: Socket; readonly text: string }> {
    const { hostname, port } = new URL(app.baseUrl)
    const socket = connect(Number(port), hostname)
    let text = ''
    socket.on('error', () => {})
    socket.on('data', chunk => {
      text += chunk
    })
    const type = 'content-type: multipart/form-data; boundary=XX'
    socket.write(`POST /v1/images/edits HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${app.key}\r\n${type}\r\ncontent-length: ${48 * MiB}\r\n\r\n`)
    for (const file of ['closed', 'open']) {
      socket.write(`--XX\r\ncontent-disposition: form-data; name="image[]"; filename="${file}.png"\r\n\r\n`)
      for (let bytes = 0; bytes < fileBytes / 2; bytes += MiB) await new Promise<void>(resolve => socket.write(piece, () => resolve()))
      if (file === 'closed') socket.write('\r\n')
    }
    // Small pieces at the end are gathered, so more follows.
    socket.write(end + 'x'.repeat(64 * 1024))
    await until(() => text.includes('}}'), 'the refusal', 30_000)
    return { socket, text }
  }

  const ends: readonly (readonly [string, string, string])[] = [
    ['too many boundaries', '\r\n--XX'.repeat(400), '400'],
    ['a part without a name', `\r\n--XX\r\ncontent-disposition: form-data; name*=UTF-8''a\r\n\r\nx\r\n--XX`, '400'],
    ['a file without a name', `\r\n--XX\r\ncontent-disposition: form-data; name*=UTF-8''a; filename="a"\r\n\r\nx\r\n--XX`, '400'],
    ['a text field that is too long', `\r\n--XX\r\ncontent-disposition: form-data; name="a"\r\n\r\n${'x'.repeat(MiB + 1)}\r\n--XX`, '413'],
  ]
  test.each(ends)('leaves no bytes in memory while its connection is open: %s', { timeout: 60_000 }, async (_why, end, status) => {
    const before = await liveBytes()
    const all: Socket[] = []
    for (let count = 0; count < forms; count++) {
      const { socket, text } = await refused(end)
      expect(text.split(' ')[1]).toBe(status)
      all.push(socket)
    }
    expect(all.filter(({ closed }) => closed)).toEqual([])
    expect((await liveBytes()) - before).toBeLessThan(fileBytes)
    for (const socket of all) socket.destroy()
  })
})
