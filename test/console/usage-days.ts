import type { TestApp } from '../harness/app.ts'
import { type MovableClock, movableClock } from '../harness/clock.ts'

const dayMs = 86_400_000
const route = (provider: string, input: number, output: number) => ({
  provider,
  upstream_model: `${provider}-upstream`,
  input_inr_per_mtok: input,
  output_inr_per_mtok: output,
  source: 'test',
  as_of: '2026-01-01',
})
const models = ['claude-sonnet-4.5', 'gpt-5-mini', 'gemini-3-pro', 'sarvam-m'] as const

/** Models with names that people know, served by the upstreams of the tests. */
export const namedModels = (urls: { alpha: string; beta: string; indus: string }) => ({
  providers: [
    { id: 'alpha', base_url: urls.alpha, residency: 'global', auth: 'bearer' },
    { id: 'indus', base_url: urls.indus, residency: 'india', auth: 'bearer' },
  ],
  models: models.map((id, index) => ({
    id,
    kind: 'chat',
    context_length: 100_000,
    tools: true,
    routes: [route(index === 3 ? 'indus' : 'alpha', 250 - index * 60, 1250 - index * 300)],
  })),
})

/** A clock that begins so many days ago. */
export const clockBefore = (days: number): MovableClock => movableClock(Date.now() - days * dayMs)

/** Makes calls on each of the days before now, more on some than on others. The clock is at the real time after that. */
export async function makeUsage(app: TestApp, clock: MovableClock, days: number): Promise<void> {
  const keys = [app.key, (await app.newKey({ name: 'Build server', budgetInr: 400 })).key, (await app.newKey({ name: 'Night batch', budgetInr: 90 })).key]
  for (const upstream of [app.alpha, app.indus])
    upstream.script(({ json }) => {
      const length = JSON.stringify(json?.['messages'] ?? '').length
      return { usage: { prompt_tokens: 900 + length * 110, completion_tokens: 300 + length * 20, total_tokens: 1_200 + length * 130 } }
    })
  for (let day = 0; day <= days; day++) {
    const calls = 2 + ((day * 7) % 5)
    for (let call = 0; call < calls; call++) {
      const model = models[(day + call * call) % models.length]
      const messages = [{ role: 'user', content: 'x'.repeat(20 + ((day * 13 + call * 29) % 90)) }]
      await app.call('POST', '/v1/chat/completions', { model, messages, max_tokens: 4_000 }, { token: keys[(day + call) % keys.length] ?? app.key })
    }
    await app.gateway.app.limits.flushNow()
    if (day < days) clock.advance(dayMs)
  }
  app.alpha.script([])
  app.indus.script([])
}
