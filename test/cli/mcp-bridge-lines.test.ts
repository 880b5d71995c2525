import { PassThrough, Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { LineWriter, lineMaxBytes, linesOf } from '../../src/cli/mcp-bridge/mcp-bridge-lines.ts'
import { messagesOf, protocolHeaders } from '../../src/cli/mcp-bridge/mcp-bridge-message.ts'

test('lines do not depend on how their bytes arrive, and a line that is too long is skipped', async () => {
  const long = 'x'.repeat(lineMaxBytes + 1)
  const bytes = Buffer.from(`{"a":"ü"}\r\n\n  \n${long}\n{"b":1}`)
  for (const size of [1000, 65_536, bytes.length]) {
    const input = new PassThrough({ highWaterMark: bytes.length + 1 })
    for (let at = 0; at < bytes.length; at += size) input.write(bytes.subarray(at, at + size))
    input.end()
    const lines = []
    for await (const line of linesOf(input)) lines.push(line)
    expect(lines).toEqual(['{"a":"ü"}', null, '{"b":1}'])
  }
  const input = new PassThrough()
  for (const byte of Buffer.from('{"ü":"–"}\n')) input.write(Buffer.from([byte]))
  input.end()
  for await (const line of linesOf(input)) expect(line).toBe('{"ü":"–"}')
})

test('the writer waits for a slow reader, and a line break inside a message does not split the message', async () => {
  const taken: string[] = []
  let go = (): void => {}
  const output = new Writable({
    highWaterMark: 10,
    write(chunk, _encoding, done) {
      taken.push(String(chunk))
      go = done
    },
  })
  let isGone = false
  const writer = new LineWriter(output, () => {
    isGone = true
  })
  let isWritten = false
  const writing = writer.write('{"a":\n"a long message"}').then(() => {
    isWritten = true
  })
  await new Promise(resolve => setImmediate(resolve))
  expect([taken, isWritten]).toEqual([['{"a": "a long message"}\n'], false])
  go()
  await writing
  const late = writer.write('{"another":"one that nobody reads"}')
  output.destroy()
  await late
  expect(isGone).toBe(true)
  await writer.write('{"b":2}')
  expect(taken).toHaveLength(2)
})

test('for protocol version 2026-07-28, headers repeat fields of the message in a form that headers can contain', () => {
  const headersOf = (params: object, method = 'tools/call'): Record<string, string> => {
    const [message] = messagesOf(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })) ?? []
    return message === undefined ? {} : protocolHeaders(message, '2025-11-25')
  }
  const _meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' }
  expect(headersOf({ name: 'chat' })).toEqual({ 'mcp-protocol-version': '2025-11-25' })
  expect(headersOf({ name: 'chat', _meta })).toEqual({ 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'chat' })
  expect(headersOf({ uri: 'memory://ü', _meta }, 'resources/read')['mcp-name']).toBe('=?base64?bWVtb3J5Oi8vw7w=?=')
  expect(headersOf({ name: '=?base64?eA==?=', _meta })['mcp-name']).toBe('=?base64?PT9iYXNlNjQ/ZUE9PT89?=')
  expect(headersOf({ _meta }, 'tools/list')).toEqual({ 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list' })
})

test.each(['', '1', '[]', '[1]', '{"id":1}', '{"method":1}', '{"id":null,"method":"x"}', '{'])('%s is not a message', line => {
  expect(messagesOf(line)).toBeNull()
})
