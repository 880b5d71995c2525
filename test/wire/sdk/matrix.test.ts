/** Invariant (vii): real client packages, over HTTP and with providers of every dialect, receive what the model wrote. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hasDialect } from '../../../src/gateway/providers/dialects.ts'
import type { DialectId } from '../../../src/gateway/providers/provider.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { modelOfDialect } from '../../harness/dialect-upstreams.ts'
import type { UpstreamServer } from '../../harness/upstream-server.ts'
import { callsOf, reasoningOf, textOf } from '../turns/turn.ts'
import { aiClients } from './ai-clients.ts'
import { anthropicMessages } from './anthropic-client.ts'
import { type Ask, answer, pixelBase64, type SdkClient, type Told, weatherTool } from './ask.ts'
import { langchain } from './langchain-client.ts'
import { openAiChat, openAiResponses } from './openai-clients.ts'
import { errorOf, scriptOf, type TurnName, turns } from './scenarios.ts'

const dialects: readonly DialectId[] = ['openai', 'anthropic', 'gemini', 'openai-responses']
const clientsAt = (baseUrl: string, key: string): readonly SdkClient[] => [
  openAiChat(baseUrl, key),
  openAiResponses(baseUrl, key),
  anthropicMessages(baseUrl, key),
  ...aiClients(baseUrl, key),
  langchain(baseUrl, key),
]

let app: TestApp
beforeAll(async () => {
  app = await startApp({ dialects: true, env: { CIRCUIT_OPEN_MS: '1' } })
})
afterAll(() => app.stop())

const serverOf = (dialect: DialectId): UpstreamServer =>
  ({ openai: app.alpha, anthropic: app.others.claude, gemini: app.others.gem, 'openai-responses': app.others.resp })[dialect]

// The titles are needed before the gateway has started, so the address is a placeholder.
for (const [place, { name, cannot }] of clientsAt('http://127.0.0.1:1', 'none').entries()) {
  for (const dialect of dialects.filter(hasDialect)) {
    const client = (): SdkClient => {
      const found = clientsAt(app.baseUrl, app.key)[place]
      if (found === undefined) throw new Error('no such client')
      return found
    }
    const ask = (turn: TurnName, more: Partial<Ask> = {}): Promise<Told> => {
      serverOf(dialect).reset()
      serverOf(dialect).script(scriptOf(dialect, turn))
      return client().ask({ model: modelOfDialect[dialect], stream: false, image: false, tools: false, schema: false, thinking: false, ...more })
    }
    const sent = (): string => serverOf(dialect).requests.at(-1)?.raw.toString('utf8') ?? ''
    const cell = (scenario: string, run: () => Promise<void>): void => {
      const reason = cannot[`${scenario}, ${dialect}`] ?? cannot[scenario]
      if (reason === undefined) test(scenario, run)
      else test.skip(`${scenario}: cannot be, ${reason}`, run)
    }

    describe(`${name}, ${dialect} upstream`, () => {
      for (const stream of [false, true]) {
        const how = stream ? ' streamed' : ''
        cell(`text${how}`, async () => {
          const told = await ask('text', { stream })
          expect(told).toMatchObject({ text: textOf(turns.text), calls: [], finish: client().finishes.stop })
        })
        for (const turn of ['one tool', 'parallel tools'] as const)
          cell(`${turn}${how}`, async () => {
            const told = await ask(turn, { stream, tools: true })
            expect(told.calls).toEqual(callsOf(turns[turn]).map(({ name: called, parts }) => ({ name: called, input: JSON.parse(parts.join('')) as unknown })))
            expect(told.finish).toBe(client().finishes.tools)
            expect(sent()).toContain(weatherTool.name)
          })
        cell(`json schema${how}`, async () => {
          expect((await ask('json schema', { stream, schema: true })).object).toEqual(answer)
          expect(sent(), 'the schema goes up').toMatch(/"city"/)
        })
        cell(`thinking${how}`, async () => {
          const told = await ask('thinking', { stream, thinking: true })
          expect(told).toMatchObject({ text: 'Fine.', reasoning: reasoningOf(turns.thinking) })
        })
        cell(`refusal${how}`, async () => {
          const told = await ask('refusal', { stream })
          expect(told.finish).toBe(client().finishes.refused)
          expect(told.text).toContain(textOf(turns.refusal))
        })
        cell(`max tokens${how}`, async () => {
          const told = await ask('max tokens', { stream })
          expect(told).toMatchObject({ text: textOf(turns['max tokens']), finish: client().finishes.length })
        })
        for (const [status, seen] of [
          [400, 400],
          [429, 502],
          [500, 502],
        ] as const)
          cell(`error ${status}${how}`, async () => {
            serverOf(dialect).reset()
            serverOf(dialect).script(() => errorOf(dialect, status))
            const failed = client()
              .ask({ model: modelOfDialect[dialect], stream, image: false, tools: false, schema: false, thinking: false })
              .catch((error: unknown) => client().statusOf(error) ?? error)
            expect(await failed).toBe(seen)
          })
      }
      cell('image', async () => {
        await ask('text', { image: true })
        expect(sent()).toContain(pixelBase64)
      })
    })
  }
}
