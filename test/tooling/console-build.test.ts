import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliDecompressSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { boundOf, bounds } from '../../scripts/build-console.mjs'
import { consoleClient } from '../../scripts/console-client.mjs'
import { root } from '../../scripts/paths.mjs'

test('a build of the console stays within its bounds of size and processor time, and compresses every file', { timeout: 120_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'brigade-console-'))
  try {
    const run = spawnSync(process.execPath, [join(root, 'scripts', 'build-console.mjs'), folder, '--report'], { encoding: 'utf8' })
    expect([run.status, run.stderr]).toEqual([0, ''])
    const { cpuMs, shellBytes, pages } = JSON.parse(run.stdout)
    expect(cpuMs).toBeLessThanOrEqual(bounds.cpuMs)
    expect(shellBytes).toBeLessThanOrEqual(bounds.shellBytes)
    expect(pages.length).toBeGreaterThan(2)
    for (const { name, bytes } of pages) expect(bytes, name).toBeLessThanOrEqual(boundOf(name))
    for (const name of readdirSync(join(folder, 'assets')).filter(each => each.endsWith('.js'))) {
      const path = join(folder, 'assets', name)
      expect(name).toMatch(/-[\w-]{8}\.js$/)
      if (existsSync(`${path}.br`)) expect(brotliDecompressSync(readFileSync(`${path}.br`)).equals(readFileSync(path)), name).toBe(true)
    }
    const html = readFileSync(join(folder, 'index.html'), 'utf8')
    expect(html.match(/<script(?![^>]*\ssrc=)/g), 'inline scripts').toBeNull()
    expect(html).not.toMatch(/style=|https?:\/\//)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

const operation = (more: object) => ({
  operationId: 'getThing',
  tags: [],
  summary: 'One thing.',
  parameters: [],
  responses: { 200: { content: { 'application/json': { schema: { type: 'object', properties: { ok: { const: true } }, required: ['ok'] } } } } },
  ...more,
})

test('the typed client has a type for each input and the reply, and leaves out operations without JSON', () => {
  const text = consoleClient({
    paths: {
      '/things/{id}': {
        get: operation({
          parameters: [
            { name: 'id', in: 'path', required: true, schema: { type: 'string' } },
            { name: 'q', in: 'query', required: false, schema: { type: 'string' } },
          ],
        }),
        patch: operation({
          operationId: 'changeThing',
          requestBody: {
            content: {
              'application/json': {
                schema: {
                  type: 'object',
                  properties: { limit: { anyOf: [{ type: 'integer' }, { type: 'null' }] }, kinds: { type: 'array', items: { enum: ["it's", 'b'] } } },
                  required: ['limit'],
                },
              },
            },
          },
        }),
      },
      '/page': { get: operation({ operationId: 'page', responses: { 200: { content: { 'text/html': {} } } } }) },
    },
  })
  expect(text).toContain('path: { id: string | number }')
  expect(text).toContain('query?: { q?: string }')
  expect(text).toContain("body: { limit: number | null; kinds?: ('it\\'s' | 'b')[] }")
  expect(text).toContain('reply: { ok: true }')
  expect(text).toContain("changeThing: 'PATCH /things/{id}'")
  expect(text).not.toContain("page: '")
})
