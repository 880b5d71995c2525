/** What a person reads with a cookie is for nobody else. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { startApp } from '../../harness/app.ts'

const reads = readFileSync(new URL('../../endpoints.txt', import.meta.url), 'utf8')
  .split('\n')
  .flatMap(line => /^here GET (\/me\/[^{\s]*)$/.exec(line)?.[1] ?? [])
  // A stream of hints does not end. Its own test reads its headers.
  .filter(path => path !== '/me/events')

test('no cache stores what a person reads with a cookie, as JSON, CSV or bytes', async () => {
  const app = await startApp({ env: { FOLDER_STORE: 'on', CONSOLE_RPM: '10000' } })
  try {
    const cookie = await app.signIn()
    await app.call('PUT', '/me/memory-store', { store: 'folder' }, { cookie })
    await app.call('PUT', `/me/memory/o?key=agents/a.md`, 'text', { cookie })
    expect(reads.length).toBeGreaterThan(25)
    let good = 0
    for (const path of [...reads, '/me/activity?format=csv', '/me/memory/o?key=agents/a.md']) {
      const reply = await app.call('GET', path, undefined, { cookie })
      if (reply.status !== 200) continue
      good++
      expect(reply.headers.get('cache-control'), path).toMatch(/^no-store|^private/)
    }
    expect(good).toBeGreaterThan(20)
  } finally {
    await app.stop()
  }
})
