/** Prices that depend on the length of the prompt. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { operatorFile } from '../../../src/gateway/catalog/loading/file-schema.ts'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'
import { until } from '../../harness/until.ts'
import { usageRows } from '../../harness/usage-rows.ts'

const tiers = [
  { above_prompt_tokens: 1000, input_inr_per_mtok: 20, output_inr_per_mtok: 60, cached_input_inr_per_mtok: 2 },
  { above_prompt_tokens: 5000, input_inr_per_mtok: 100, output_inr_per_mtok: 200 },
]
const route = {
  ...{ provider: 'alpha', upstream_model: 'long-up', input_inr_per_mtok: 10, output_inr_per_mtok: 40, cached_input_inr_per_mtok: 1 },
  ...{ tiers, source: 'test', as_of: '2026-01-01' },
}
const model = { id: 'long', kind: 'chat', context_length: 100_000, max_output_tokens: 1000, routes: [route] }

describe('prices of long prompts', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({
      operatorFile: urls => {
        const file = defaultOperatorFile(urls)
        return { ...file, models: [...file.models, model] }
      },
    })
  })
  afterAll(() => app.stop())
  beforeEach(() => app.alpha.reset())
  const chat = (token: string, content: string, more: object = {}) =>
    app.call('POST', '/v1/chat/completions', { model: 'long', messages: [{ role: 'user', content }], ...more }, { token })

  test.each([
    ['as long as the first tier begins', 1000, 0, 1000 * 10 + 100 * 40],
    ['one token longer', 1001, 0, 1001 * 20 + 100 * 60],
    ['longer by cached tokens', 1001, 1000, 1 * 20 + 1000 * 2 + 100 * 60],
    ['in the highest tier, without a price of cached tokens', 5001, 1000, 5001 * 100 + 100 * 200],
  ] as const)('a prompt %s is charged with all its output at the price of its length', async (_, prompt, cached, uinr) => {
    const usage = { prompt_tokens: prompt, completion_tokens: 100, total_tokens: prompt + 100, prompt_tokens_details: { cached_tokens: cached } }
    const { token } = await app.newAgent(`long ${prompt} ${cached}`)
    for (const stream of [false, true]) {
      app.alpha.script({ usage })
      expect((await chat(token, 'x'.repeat(300), { stream })).status).toBe(200)
      expect((await usageRows(app))[0]).toMatchObject({ costUinr: BigInt(uinr), valueUinr: BigInt(uinr) })
    }
  })

  test('a hold has the price of the highest tier that the prompt can reach', async () => {
    const heldFor = async (bytes: number): Promise<number> => {
      const { id, token } = await app.newAgent(`holder ${bytes}`)
      await app.setBudget('agent', id, 1000)
      app.alpha.reset()
      app.alpha.script({ hold: true, usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } })
      const pending = chat(token, 'x'.repeat(bytes))
      await app.alpha.arrived(1)
      const { held_inr } = (await app.call('GET', '/v1/me/budgets', undefined, { token })).json.budgets[0]
      app.alpha.release()
      expect((await pending).status).toBe(200)
      return held_inr * 1e6
    }
    // 1,000 tokens of output, and a token for three bytes. A tokenizer may make a token of every byte.
    expect(await heldFor(600)).toBeLessThan(1000 * 40 + 300 * 10)
    expect(await heldFor(1200)).toBeGreaterThan(1000 * 60 + 400 * 20)
    expect(await heldFor(6000)).toBeGreaterThan(1000 * 200 + 2000 * 100)
  })

  describe('a caller who leaves', () => {
    const leave = async (bytes: number, rawStream: readonly string[]) => {
      const { token } = await app.newAgent(`leaver ${bytes} ${rawStream.length}`)
      const before = (await usageRows(app, 1000)).length
      app.alpha.script({ rawStream, holdAfterRaw: true })
      const left = new AbortController()
      const reply = await fetch(`${app.baseUrl}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'long', stream: true, messages: [{ role: 'user', content: 'x'.repeat(bytes) }] }),
        signal: left.signal,
      })
      let seen = ''
      for await (const part of reply.body ?? []) {
        seen += Buffer.from(part).toString()
        if (rawStream.every(raw => seen.includes(raw.slice(6, 60)))) break
      }
      left.abort()
      await until(async () => (await usageRows(app, 1000)).length > before, 'the call is settled')
      const [row] = await usageRows(app)
      expect(row).toMatchObject({ outcome: 'client_gone', estimated: true })
      if (row === undefined) throw new Error('the call has no row')
      return row
    }
    const said = 'abcdefghij'.repeat(30)
    const chunk = (more: object): string =>
      `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'long-up', choices: [{ index: 0, delta: { content: said }, finish_reason: null }], ...more })}\n\n`

    test('pays the price of the highest tier that the prompt can reach, which its hold assumed', async () => {
      for (const [bytes, input, output] of [
        [900, 10n, 40n],
        [2700, 20n, 60n],
        [9000, 100n, 200n],
      ] as const) {
        const { promptTokens, completionTokens, costUinr } = await leave(bytes, [chunk({})])
        expect(Number(promptTokens)).toBeGreaterThanOrEqual(bytes / 3)
        expect(completionTokens).toBe(100n)
        expect(costUinr, `${bytes}`).toBe(promptTokens * input + completionTokens * output)
      }
    })

    test('pays the price of the reported length once the provider has reported the prompt', async () => {
      const usage = { prompt_tokens: 950, completion_tokens: 1, total_tokens: 951 }
      const { promptTokens, completionTokens, costUinr } = await leave(2700, [chunk({ usage }), chunk({})])
      expect(promptTokens).toBe(950n)
      expect(costUinr).toBe(950n * 10n + completionTokens * 40n)
    })
  })

  test('tiers that do not rise, or have no price, are refused', () => {
    const given = (list: readonly object[]) => operatorFile.safeParse({ models: [{ ...model, routes: [{ ...route, tiers: list }] }] }).success
    expect(given(tiers)).toBe(true)
    expect(given([...tiers].reverse())).toBe(false)
    expect(given([tiers[0] as object, tiers[0] as object])).toBe(false)
    expect(given([{ above_prompt_tokens: 1000, input_inr_per_mtok: 20 }])).toBe(false)
  })
})
