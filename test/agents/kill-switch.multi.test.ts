import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../src/platform/db.ts'
import { until } from '../harness/app.ts'
import { onPostgres } from '../harness/database.ts'
import { call, chat, type Fleet, fleetAnswer, startFleet } from '../harness/fleet.ts'
import type { GatewayProcess } from '../harness/process.ts'

/** Longest time from a revoke to the end of a stream on another process, with or without notifications. */
const cutDeadlineMs = 2000

/** What a revoke writes, but nobody is notified of it: as when LISTEN is blocked on the other processes. */
const revokeUnheard = statement<[orgId: number, agentId: number], { seq: bigint }>(
  'test.revoke_unheard',
  `with dead as (
     update agents set status = 'revoked', epoch = epoch + 1, epoch_at = clock_timestamp(), revoked_at = clock_timestamp()
     where org_id = $1::int and id = $2::int returning id, epoch
   )
   insert into control_log (kind, ref, epoch) select 'agent_revoked', id::text, epoch from dead returning seq`,
)

describe.runIf(onPostgres)('a revoke on another process', () => {
  let fleet: Fleet
  let here: GatewayProcess
  let there: GatewayProcess
  beforeAll(async () => {
    // The poll as it is by default.
    fleet = await startFleet({ CONTROL_POLL_MS: '1000' })
    here = await fleet.start()
    there = await fleet.start()
  })
  afterAll(() => fleet?.stop())

  const frames = (text: string): string[] =>
    text
      .split('\n\n')
      .filter(event => event.startsWith('data: '))
      .map(event => event.slice(6))
  const rowsOf = async (agentId: number) => (await fleet.usage()).filter(row => row.agentId === agentId)

  test('KILL-01 cuts the stream, closes the provider, leaves one event of what was produced and none later, and refuses the next call, also when notifications are lost', async () => {
    for (const heard of [true, false]) {
      fleet.upstream.reset()
      fleet.upstream.script(request => ({ ...fleetAnswer(request), holdAfterChunks: 4, chunks: Array.from({ length: 9 }, () => 'x'.repeat(90)) }))
      const { id, token } = await fleet.newAgent(`streaming-${heard}`, 5)
      const response = await fetch(`${there.baseUrl}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'fixed-model', stream: true, messages: [{ role: 'user', content: 'Hello' }] }),
      })
      const reader = (response.body as ReadableStream<Uint8Array>).getReader()
      const decoder = new TextDecoder()
      let text = ''
      let ended = false
      const read = (async () => {
        for (let part = await reader.read(); !part.done; part = await reader.read()) text += decoder.decode(part.value, { stream: true })
        ended = true
      })()
      await until(() => frames(text).length === 4)
      if (heard) expect((await call(here, fleet.key, 'POST', `/v1/me/agents/${id}/revoke`, {})).status).toBe(200)
      else await fleet.db.one(revokeUnheard, fleet.orgId, id)
      await until(() => ended, cutDeadlineMs)
      await read
      expect(frames(text).at(-1)).toBe('[DONE]')
      expect(JSON.parse(frames(text).at(-2) ?? '').error.code).toBe('agent_revoked')
      await fleet.upstream.requests[0]?.closed
      expect(fleet.upstream.requests[0]?.aborted).toBe(true)
      const next = await chat(there, token, 10)
      expect([next.status, next.json.error.code, next.json.reason]).toEqual([401, 'invalid_api_key', 'agent_revoked'])
      await until(async () => (await call(here, token, 'GET', '/v1/me/whoami')).status === 401, cutDeadlineMs)
      await until(async () => (await rowsOf(id)).length > 0)
      fleet.upstream.release()
      // What another call of another agent has written comes behind whatever this one would still write.
      const { id: later, token: laterToken } = await fleet.newAgent(`later-${heard}`, null)
      fleet.upstream.script(fleetAnswer)
      expect((await chat(there, laterToken, 10)).status).toBe(200)
      await until(async () => (await rowsOf(later)).length === 1)
      expect(await rowsOf(id)).toMatchObject([{ outcome: 'cut', estimated: true, completionTokens: 120n, valueUinr: 12_000n }])
    }
    expect(await fleet.violations()).toEqual([])
  })
})
