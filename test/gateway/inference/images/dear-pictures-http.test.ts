/** Pictures for which providers charge more have a separate price on the platform key, or are refused there. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { defaultOperatorFile, startApp, type TestApp } from '../../../harness/app.ts'
import { picture } from '../../../harness/pictures.ts'
import { usageRows } from '../../../harness/usage-rows.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp({
    operatorFile: urls => {
      const file = defaultOperatorFile(urls)
      const draw = { kind: 'image', inr_per_image: 3 }
      const picks = { provider: 'alpha', upstream_model: 'gpt-image-1', image_style: 'openai-gpt-image' }
      return {
        ...file,
        models: [
          ...file.models,
          { ...draw, id: 'plain-only', routes: [{ provider: 'alpha', upstream_model: 'draw-up' }] },
          { ...draw, id: 'picks', edits: true, routes: [{ ...picks, inr_per_image_most: 12 }] },
          { ...draw, id: 'picks-inputs', edits: true, routes: [{ ...picks, inr_per_image_most: 12, inr_per_input_image: 1 }] },
          { ...draw, id: 'picks-plain-only', edits: true, routes: [picks] },
          { ...draw, id: 'any-size', edits: true, routes: [{ provider: 'alpha', upstream_model: 'draw-up', inr_per_image_most: 12 }] },
        ],
      }
    },
  })
})
beforeEach(() => {
  app.alpha.reset()
  tells()
})
afterAll(() => app.stop())

/** Makes the provider answer with a picture and these fields about it. */
const tells = (more: object = {}) => app.alpha.script(() => ({ body: { created: 1, data: [{ url: 'https://images.example/1.png' }], ...more } }))
const edit = async (fields: Readonly<Record<string, string>>, files: readonly string[] = ['image']) => {
  const form = new FormData()
  for (const [name, value] of Object.entries({ prompt: 'a hat on it', ...fields })) form.append(name, value)
  for (const name of files) form.append(name, new Blob([new Uint8Array(await picture(8, 8))], { type: 'image/png' }), 'picture.png')
  const reply = await fetch(`${app.baseUrl}/v1/images/edits`, { method: 'POST', body: form, headers: { authorization: `Bearer ${app.key}` } })
  return { status: reply.status, json: JSON.parse(await reply.text()) }
}
const charged = async () => (await usageRows(app))[0]?.costUinr
const inr = (rupees: number) => BigInt(rupees) * 1_000_000n
const draw = (body: object) => app.call('POST', '/v1/images/generations', { prompt: 'a boat', ...body })

test('a larger or better picture, or one with more steps, costs the higher price of its route, or is refused on the platform key without one', async () => {
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

test('a picture whose quality the provider chooses costs the higher price unless the reply says that it is plain', async () => {
  for (const [asked, told, cost] of [
    [{}, {}, 12],
    [{ quality: 'auto' }, {}, 12],
    [{}, { quality: 'high', size: '1024x1024' }, 12],
    [{}, { quality: 'low', size: '1536x1024' }, 12],
    [{}, { quality: 'low', size: '1024x1024' }, 3],
    [{ quality: 'low' }, {}, 3],
    [{ quality: 'high' }, { quality: 'low', size: '1024x1024' }, 12],
  ] as const) {
    tells(told)
    const reply = await draw({ model: 'picks', ...asked })
    expect([reply.status, await charged()], JSON.stringify([asked, told])).toEqual([200, inr(cost)])
  }
  for (const asked of [{}, { quality: 'auto' }]) {
    const refused = await draw({ model: 'picks-plain-only', ...asked })
    expect([refused.status, refused.json.error.message]).toEqual([400, expect.stringContaining('"quality"')])
  }
  expect((await draw({ model: 'picks-plain-only', quality: 'low' })).status).toBe(200)
})

test('pictures to edit count in the price, and high input fidelity costs the higher price', async () => {
  const plain = { quality: 'low', size: '1024x1024' }
  for (const [fields, files, cost] of [
    [{ model: 'picks', ...plain }, ['image'], 12],
    [{ model: 'picks', quality: 'low' }, ['image'], 12],
    [{ model: 'picks' }, ['image'], 12],
    [{ model: 'picks-inputs', ...plain }, ['image[]', 'image[]', 'mask'], 3 + 3],
    [{ model: 'picks-inputs', ...plain, input_fidelity: 'low' }, ['image'], 3 + 1],
    [{ model: 'picks-inputs', ...plain, input_fidelity: 'high' }, ['image'], 12 + 1],
    [{ model: 'any-size', ...plain }, ['image'], 3],
    [{ model: 'any-size', ...plain, input_fidelity: 'high' }, ['image'], 12],
  ] as const) {
    const reply = await edit(fields, files)
    expect([reply.status, await charged()], JSON.stringify([fields, files, reply.json])).toEqual([200, inr(cost)])
  }
  for (const [more, named] of [
    [{}, '"image"'],
    [{ input_fidelity: 'high' }, '"input_fidelity"'],
  ] as const) {
    const refused = await edit({ model: 'picks-plain-only', ...plain, ...more })
    expect([refused.status, refused.json.error.message]).toEqual([400, expect.stringContaining(named)])
  }
})
