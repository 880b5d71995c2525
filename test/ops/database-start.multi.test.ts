import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { onPostgres } from '../harness/database.ts'
import { type OwnPostgres, startOwnPostgres } from '../harness/own-postgres.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const main = join(root, 'dist', 'main.js')
const cli = join(root, 'dist', 'cli', 'brigade.js')

describe.runIf(onPostgres)('a start without its database', { timeout: 120_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'brigade-no-database-'))
  let postgres: OwnPostgres
  beforeAll(async () => {
    postgres = await startOwnPostgres()
  }, 60_000)
  afterAll(async () => {
    await postgres?.dispose()
    rmSync(folder, { recursive: true, force: true })
  })

  /** Runs a program until it ends, and returns what it wrote to stderr. */
  function ended(url: string, words: readonly string[] = [main]): Promise<{ code: number | null; stderr: string }> {
    const env = {
      PATH: process.env['PATH'] ?? '',
      HOME: folder,
      DATA_DIR: folder,
      PORT: '0',
      MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
      DATABASE_URL: url,
    }
    const child = spawn(process.execPath, words, { cwd: folder, env, stdio: ['ignore', 'ignore', 'pipe'] })
    let stderr = ''
    child.stderr.setEncoding('utf8').on('data', text => {
      stderr += text
    })
    return new Promise(resolve => child.once('close', code => resolve({ code, stderr })))
  }

  const changed = (change: (url: URL) => void): string => {
    const url = new URL(postgres.url)
    change(url)
    return url.href
  }

  test('FIRST-07 when the database is down or wrong, the start ends with one sentence that names host, port and setting, and shows no stack and no password', async () => {
    const closed = createServer().listen(0, '127.0.0.1')
    await new Promise(resolve => closed.once('listening', resolve))
    const { port } = closed.address() as { port: number }
    await new Promise(resolve => closed.close(resolve))
    const { host } = new URL(postgres.url)
    const secret = 'top-secret'
    for (const [url, sentence] of [
      [`postgres://brigade:${secret}@127.0.0.1:${port}/brigade`, `Nothing accepts connections at 127.0.0.1:${port}.`],
      [`postgres://brigade:${secret}@database.invalid:5432/brigade`, 'database.invalid'],
      [changed(to => (to.pathname = '/missing')), `PostgreSQL at ${host} has no database "missing".`],
      [
        changed(to => Object.assign(to, { username: 'stranger', password: secret })),
        `PostgreSQL at ${host} does not let the user "stranger" into the database`,
      ],
      [changed(to => to.searchParams.set('sslmode', 'verify-full')), `PostgreSQL at ${host} offers no TLS`],
      [`postgres://brigade:${secret}@127.0.0.1:port/brigade`, 'DATABASE_URL must be a URL such as postgres://'],
      [`brigade:${secret}@127.0.0.1/brigade`, 'DATABASE_URL must be a URL such as postgres://'],
    ] as const) {
      const { code, stderr } = await ended(url)
      expect([code, stderr.trim().split('\n').length], stderr).toEqual([1, 1])
      expect(stderr).toContain(sentence)
      expect(stderr).toContain('DATABASE_URL')
      expect(stderr).not.toMatch(/ at .*\.js:\d|Error:|top-secret/)
    }
    const { code, stderr } = await ended(`postgres://brigade:${secret}@127.0.0.1:${port}/brigade`, [cli, 'doctor'])
    expect(code).toBe(1)
    expect(stderr).toContain(`Nothing accepts connections at 127.0.0.1:${port}.`)
    expect(stderr).not.toMatch(/ at .*\.js:\d|top-secret/)
  })
})
