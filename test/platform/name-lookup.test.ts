/** Names from users are resolved without the threads of the process. In these tests, a real name server on loopback answers or stays silent. */
import { createSocket, type Socket } from 'node:dgram'
import type { LookupAddress } from 'node:dns'
import { lookup as systemLookup } from 'node:dns/promises'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeNameLookup } from '../../src/platform/name-lookup.ts'

let server: Socket
let folder: string
let asked: string[] = []

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'brigade-names-'))
  await writeFile(join(folder, 'hosts'), '# a comment\n127.0.0.1 localhost localhost.localdomain # more\n::1\tlocalhost\n10.1.2.3  Printer\nnonsense line\n')
  server = createSocket('udp4')
  server.on('message', (message, from) => {
    const { name, isIpv6, end } = questionOf(message)
    asked.push(name)
    if (name.startsWith('silent')) return
    const isFound = name === 'models.example' && !isIpv6
    const code = name === 'broken.example' ? 2 : name.startsWith('none') ? 3 : 0
    const head = Buffer.from([message[0] ?? 0, message[1] ?? 0, 0x81, 0x80 | code, 0, 1, 0, isFound ? 1 : 0, 0, 0, 0, 0])
    const answer = isFound ? Buffer.from([0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 93, 184, 216, 34]) : Buffer.alloc(0)
    server.send(Buffer.concat([head, message.subarray(12, end), answer]), from.port, from.address)
  })
  await new Promise<void>(resolve => server.bind(0, '127.0.0.1', resolve))
})
afterAll(async () => {
  server.close()
  await rm(folder, { recursive: true, force: true })
})

/** Returns the name, the type and the end of the only question in a message (RFC 1035). */
function questionOf(message: Buffer): { name: string; isIpv6: boolean; end: number } {
  const labels: string[] = []
  let at = 12
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString('ascii', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), isIpv6: message.readUInt16BE(at + 1) === 28, end: at + 5 }
}

type Asked = Parameters<ReturnType<typeof makeNameLookup>>[1]

function ask(name: string, options: Asked = { all: true }, timeoutMs = 300): Promise<readonly LookupAddress[] | string> {
  const lookup = makeNameLookup({ hostsFile: join(folder, 'hosts'), servers: [`127.0.0.1:${server.address().port}`], timeoutMs })
  return new Promise(resolve => {
    lookup(name, options, (error, found, family) => {
      if (error !== null) resolve(error.code ?? 'no code')
      else resolve(typeof found === 'string' ? [{ address: found, family: family ?? 0 }] : found)
    })
  })
}

test('the hosts file takes precedence over the name server, and a name without an address differs from a missing answer', async () => {
  const loopback = [
    { address: '127.0.0.1', family: 4 },
    { address: '::1', family: 6 },
  ]
  asked = []
  expect(await ask('localhost')).toEqual(loopback)
  expect(await ask('LocalHost.')).toEqual(loopback)
  expect(await ask('localhost', { family: 6 })).toEqual([{ address: '::1', family: 6 }])
  expect(await ask('printer')).toEqual([{ address: '10.1.2.3', family: 4 }])
  expect(await ask('93.184.216.34', {})).toEqual([{ address: '93.184.216.34', family: 4 }])
  expect(asked).toEqual([])
  expect(await ask('models.example')).toEqual([{ address: '93.184.216.34', family: 4 }])
  expect(await ask('models.example', { family: 6 })).toBe('ENOTFOUND')
  expect([await ask('none.example'), await ask('broken.example'), await ask('silent.example')]).toEqual(['ENOTFOUND', 'EAI_AGAIN', 'EAI_AGAIN'])
})

test('look-ups at a silent name server delay neither files nor other names', async () => {
  let ended = 0
  const silent = Array.from({ length: 50 }, (_, n) => ask(`silent${n}.example`, { all: true }, 2_000).finally(() => ended++))
  expect(await readFile(join(folder, 'hosts'), 'utf8')).toContain('localhost')
  expect((await systemLookup('localhost')).address).toMatch(/^(127\.0\.0\.1|::1)$/)
  expect(await ask('models.example')).toHaveLength(1)
  expect(ended, 'they all still wait').toBe(0)
  expect(new Set(await Promise.all(silent))).toEqual(new Set(['EAI_AGAIN']))
})
