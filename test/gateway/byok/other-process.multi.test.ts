import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { until } from '../../harness/app.ts'
import { onPostgres } from '../../harness/database.ts'
import { call, type Fleet, startFleet } from '../../harness/fleet.ts'
import type { GatewayProcess } from '../../harness/process.ts'
import { startUpstream, type UpstreamServer } from '../../harness/upstream-server.ts'

/** Longest time from a change on one process to its effect on another. */
const effectDeadlineMs = 3000

const contentIds = statement<[], { id: string }>('test.fleet_content_ids', `select request_id as id from content_log`)

function configFile(url: string): string {
  const file = join(mkdtempSync(join(tmpdir(), 'brigade-config-')), 'brigade.config.json')
  const route = { input_inr_per_mtok: 0, output_inr_per_mtok: 100, source: 'test', as_of: '2026-01-01' }
  const model = { kind: 'chat', context_length: 100_000 }
  writeFileSync(
    file,
    JSON.stringify({
      providers: [
        { id: 'own', base_url: url, residency: 'global' },
        { id: 'fixed', base_url: url, auth: 'none', residency: 'global' },
      ],
      models: [
        { ...model, id: 'own-model', routes: [{ ...route, provider: 'own' }] },
        { ...model, id: 'fixed-model', routes: [{ ...route, provider: 'fixed' }] },
      ],
    }),
  )
  return file
}

describe.runIf(onPostgres)('saved keys and stored content in two processes', () => {
  let fleet: Fleet
  let upstream: UpstreamServer
  let here: GatewayProcess
  let there: GatewayProcess
  let cookie: string
  beforeAll(async () => {
    upstream = await startUpstream()
    fleet = await startFleet({ CONFIG_FILE: configFile(upstream.url) })
    ;[here, there] = await Promise.all([fleet.start(), fleet.start()])
    cookie = await fleet.signIn()
  })
  beforeEach(() => upstream.reset())
  afterAll(async () => {
    await fleet?.stop()
    await upstream?.close()
  })

  /** Makes a change at the first process. */
  const change = async (method: string, path: string, body: object = {}) => {
    const response = await fetch(here.baseUrl + path, { method, headers: { cookie, 'content-type': 'application/json' }, body: JSON.stringify(body) })
    expect(response.ok).toBe(true)
  }
  const chat = (at: GatewayProcess, model: string, stream = false) =>
    call(at, fleet.key, 'POST', '/v1/chat/completions', { model, stream, messages: [{ role: 'user', content: 'hi' }] })
  const keptIds = async () => (await fleet.db.many(contentIds)).map(({ id }) => id)

  test('when a key is saved, changed or removed at one process, the other follows within three seconds', async () => {
    const usedThere = () => upstream.requests.at(-1)?.headers.authorization
    expect((await chat(there, 'own-model')).json.error.code).toBe('no_route')
    await change('PUT', '/me/byok/own', { key: 'first-key-of-own' })
    await until(async () => (await chat(there, 'own-model')).status === 200, effectDeadlineMs)
    expect(usedThere()).toBe('Bearer first-key-of-own')
    await change('PUT', '/me/byok/own', { key: 'second-key-of-own' })
    await until(async () => (await chat(there, 'own-model')).status === 200 && usedThere() === 'Bearer second-key-of-own', effectDeadlineMs)
    await change('DELETE', '/me/byok/own')
    await until(async () => (await chat(there, 'own-model')).status === 400, effectDeadlineMs)
  })

  test('when a retention window closes at one process, the other drops the content that it has not yet written, even when a new window opens', async () => {
    await change('PUT', '/me/org/data-retention', { days: 7 })
    await until(async () => {
      await chat(there, 'fixed-model')
      return (await keptIds()).length > 0
    }, effectDeadlineMs)
    const before = upstream.requests.length
    upstream.script({ holdAfterChunks: 1 })
    const running = chat(there, 'fixed-model', true)
    await upstream.arrived(before + 1)
    await change('PUT', '/me/org/data-retention', { days: 0 })
    expect(await keptIds()).toEqual([])
    await change('PUT', '/me/org/data-retention', { days: 7 })
    // Once this call's content is stored, the process has also seen all earlier news.
    await until(async () => {
      await chat(there, 'fixed-model')
      return (await keptIds()).length > 0
    }, effectDeadlineMs)
    upstream.release()
    const reply = await running
    expect(reply.text).toContain('[DONE]')
    // Content is stored in the order in which calls end.
    const last = await chat(there, 'fixed-model')
    await until(async () => (await keptIds()).includes(last.headers.get('x-request-id') ?? ''), effectDeadlineMs)
    expect(await keptIds()).not.toContain(reply.headers.get('x-request-id'))
  })
})
