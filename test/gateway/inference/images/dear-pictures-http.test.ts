/** Pictures that providers charge more for have a price of their own on the operator's key, or are refused there. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { defaultOperatorFile, startApp, type TestApp } from '../../../harness/app.ts'
import { usageRows } from '../../../harness/usage-rows.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp({
    operatorFile: urls => {
      const file = defaultOperatorFile(urls)
      const draw = { kind: 'image', inr_per_image: 3 }
      return {
        ...file,
        models: [
          ...file.models,
          { ...draw, id: 'plain-only', routes: [{ provider: 'alpha', upstream_model: 'draw-up' }] },
          { ...draw, id: 'any-size', routes: [{ provider: 'alpha', upstream_model: 'draw-up', inr_per_image_most: 12 }] },
        ],
      }
    },
  })
  app.alpha.script(() => ({ body: { created: 1, data: [{ url: 'https://images.example/1.png' }] } }))
})
afterAll(() => app.stop())

const draw = (body: object) => app.call('POST', '/v1/images/generations', { prompt: 'a boat', ...body })

test("a picture that is asked for larger, better or with more steps costs what its route says, or is refused on the operator's key", async () => {
  for (const [field, value] of [
    ['size', '2048x2048'],
    ['quality', 'high'],
    ['steps', 100],
  ] as const) {
    const refused = await draw({ model: 'plain-only', [field]: value })
    expect([refused.status, refused.json.error.code]).toEqual([400, 'bad_request'])
    expect(refused.json.error.message).toContain(`"${field}"`)
    expect(app.alpha.requests).toHaveLength(0)
  }
  for (const more of [{}, { size: '512x512' }, { quality: 'standard' }]) {
    expect((await draw({ model: 'plain-only', ...more })).status).toBe(200)
    expect((await usageRows(app))[0]?.costUinr).toBe(3_000_000n)
  }
  for (const [more, cost] of [
    [{}, 3],
    [{ quality: 'high' }, 12],
    [{ size: '1536x1024' }, 12],
  ] as const) {
    const reply = await draw({ model: 'any-size', ...more })
    expect([reply.status, reply.headers.get('x-br-cost-inr')]).toEqual([200, String(cost)])
    expect((await usageRows(app))[0]?.costUinr).toBe(BigInt(cost) * 1_000_000n)
  }
})
