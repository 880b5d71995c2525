/** Runs over several processes. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { until } from '../../harness/app.ts'
import { onPostgres } from '../../harness/database.ts'
import { call, type Fleet, startFleet } from '../../harness/fleet.ts'
import type { GatewayProcess } from '../../harness/process.ts'

describe.runIf(onPostgres)('runs on several processes', () => {
  let fleet: Fleet
  let processes: GatewayProcess[]
  beforeAll(async () => {
    fleet = await startFleet()
    processes = [await fleet.start(), await fleet.start()]
  })
  afterAll(() => fleet?.stop())

  const chat = (process: GatewayProcess, run: string) =>
    call(
      process,
      fleet.key,
      'POST',
      '/v1/chat/completions',
      { model: 'fixed-model', max_tokens: 5, messages: [{ role: 'user', content: 'Hello' }] },
      { 'x-br-run-id': run },
    )

  test('the calls of a run on two processes are one run, and its end on one process cuts and refuses its calls on the other', async () => {
    const [one, two] = processes as [GatewayProcess, GatewayProcess]
    await Promise.all(Array.from({ length: 10 }, (_, n) => chat(n % 2 === 0 ? one : two, 'shared')))
    const run = async () => (await call(one, fleet.key, 'GET', '/v1/me/runs/shared')).json
    await until(async () => (await run())?.calls === 10)
    fleet.upstream.hold()
    const before = fleet.upstream.requests.length
    const running = chat(two, 'shared')
    await fleet.upstream.arrived(before + 1)
    expect((await call(one, fleet.key, 'POST', '/v1/me/runs/shared/end')).json).toMatchObject({ state: 'ended' })
    expect((await running).json.error.code).toBe('run_ended')
    fleet.upstream.release()
    for (const process of [one, two]) expect((await chat(process, 'shared')).json.error.code).toBe('run_ended')
    // A process that starts later knows it too.
    expect((await chat(await fleet.start(), 'shared')).json.error.code).toBe('run_ended')
    expect(await fleet.violations()).toEqual([])
  })
})
