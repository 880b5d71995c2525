import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp, until } from '../../../harness/app.ts'
import { fileWithMedia } from '../../../harness/media-models.ts'
import { usageRows } from '../../../harness/usage-rows.ts'

/** The number of calls of one organisation that the gateway continues after their callers have disconnected. */
const places = 64
const further = 4

describe('pictures whose callers leave', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ operatorFile: fileWithMedia })
  })
  afterAll(() => app.stop())

  test('HARD-05 when an organisation has no places left, pictures whose callers disconnect are charged as requested', async () => {
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
    // The price is ₹3 for a picture.
    for (const row of rows) expect([row.outcome, row.images, row.costUinr]).toEqual(['client_gone', 2, 6_000_000n])
    expect(rows.filter(({ estimated }) => estimated)).toHaveLength(further)
  })
})
