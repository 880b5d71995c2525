import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp, until } from '../../../harness/app.ts'
import { fileWithMedia } from '../../../harness/media-models.ts'
import { usageRows } from '../../../harness/usage-rows.ts'

/** How many left calls of one organisation are followed. */
const places = 64
const further = 4

describe('pictures whose callers leave', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ operatorFile: fileWithMedia })
  })
  afterAll(() => app.stop())

  test('HARD-05 beyond the places of an organisation, left pictures are charged as they were asked for', async () => {
    const picture = { b64_json: 'iVBORw0KGgo=' }
    app.alpha.script(() => ({ hold: true, body: { created: 1, data: [picture, picture] } }))
    const leaving = new AbortController()
    const body = { model: 'draw', prompt: 'a cat', n: 2, quality: 'low' }
    const calls = Array.from({ length: places + further }, () =>
      app.call('POST', '/v1/images/generations', body, { signal: leaving.signal }).catch(() => undefined),
    )
    await app.alpha.arrived(places + further, 20_000)
    leaving.abort()
    await Promise.all(calls)
    await until(() => app.alpha.requests.filter(({ aborted }) => aborted).length === further)
    app.alpha.release()
    await until(async () => (await usageRows(app, 200)).length === places + further)
    const rows = await usageRows(app, places + further)
    // ₹3 a picture.
    for (const row of rows) expect([row.outcome, row.images, row.costUinr]).toEqual(['client_gone', 2, 6_000_000n])
    expect(rows.filter(({ estimated }) => estimated)).toHaveLength(further)
  })
})
