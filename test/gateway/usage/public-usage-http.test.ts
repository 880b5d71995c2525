import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Catalog } from '../../../src/gateway/catalog/catalog.ts'
import { loadCatalog } from '../../../src/gateway/catalog/loading/load.ts'
import { openApiOf } from '../../../src/gateway/http/documents/openapi.ts'
import { bindingsOf, endpointTable } from '../../../src/gateway/http/rows/endpoint-table.ts'
import { PublicUsage } from '../../../src/gateway/usage/public/public-usage.ts'
import { loadConfig } from '../../../src/platform/config.ts'
import { type Db, statement } from '../../../src/platform/db/db.ts'
import { silentLog } from '../../../src/platform/observe/log.ts'
import { istDay } from '../../../src/platform/values/ist-time.ts'
import { startApp, type TestApp, until } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'
import { testDatabase } from '../../harness/database.ts'

const addDay = statement<[day: string, model: string, shard: number, sums: readonly number[]]>(
  'test.public_add_model_day',
  `insert into model_days (day, model, shard, requests, tokens, succeeded, failed, written_tokens, written_ms)
   select $1::date, $2::text, $3::smallint, s[1], s[2], s[3], s[4], s[5], s[6] from (select $4::bigint[] as s) as given`,
)
const addLatency = statement<[day: string, model: string, bucket: number, shard: number, requests: number]>(
  'test.public_add_latency',
  'insert into model_latencies (day, model, bucket, shard, requests) values ($1::date, $2::text, $3::smallint, $4::smallint, $5::bigint)',
)
const dayMs = 24 * 3600_000
/** 00:15 in India. */
const clock = movableClock(Date.UTC(2026, 9, 31, 18, 45))
const daysAgo = (days: number): string => istDay(clock.nowMs() - days * dayMs)
/** The statements of the gateway, and how many reads of the sums for the pages have begun and ended. */
const asked: string[] = []
const reads = { begun: 0, ended: 0 }

function countQueries(db: Db): void {
  const many: Db['many'] = db.many.bind(db)
  const counting: Db['many'] = async (wanted, ...params) => {
    asked.push(wanted.name)
    if (wanted.name === 'usage.sum_models') reads.begun++
    const rows = await many(wanted, ...params)
    if (wanted.name === 'usage.sum_latencies') reads.ended++
    return rows
  }
  Object.assign(db, { many: counting })
}

function operatorFile({ alpha }: { alpha: string }): object {
  const route = (provider: string, more: object = {}) => ({ provider, upstream_model: 'up', input_inr_per_mtok: 10, output_inr_per_mtok: 40, ...more })
  const chat = (id: string, routes: object[]) => ({ id, kind: 'chat', context_length: 10_000, routes })
  return {
    providers: [
      { id: 'alpha', base_url: alpha, residency: 'global', auth: 'bearer' },
      { id: 'unset', base_url: alpha, residency: 'global', auth: 'bearer' },
    ],
    models: [
      chat('real', [route('alpha')]),
      chat('team/fast:v1.5', [route('alpha')]),
      chat('tie-b', [route('alpha')]),
      chat('tie-a', [route('alpha')]),
      chat('idle', [route('alpha')]),
      chat('own-key-only', [route('alpha', { byok_only: true })]),
      chat('no-platform-key', [route('unset')]),
    ],
  }
}

let app: TestApp
const read = (path: string, headers: Record<string, string> = {}, method = 'GET') => app.call(method, path, undefined, { token: null, headers })
/** Waits for a snapshot of the present moment. */
async function afresh(): Promise<void> {
  const { begun } = reads
  clock.advance(2 * 60_000 + 1)
  await until(async () => {
    await read('/v1/rankings')
    return reads.begun > begun && reads.ended === reads.begun
  })
}

beforeAll(async () => {
  app = await startApp({ clock, operatorFile, env: { ANON_RPM: '100000' } })
  countQueries(app.db)
})
afterAll(() => app.stop())

describe('stats and rankings before any usage', () => {
  test('CAT-24 before any usage, stats and rankings are 200 with empty structures, for served models and for virtual ids', async () => {
    const empty = { window: '7d', success_rate: null, p50_latency_ms: null, p95_latency_ms: null, tokens_per_second: null, requests: 0 }
    for (const id of ['idle', 'auto', 'auto:cheapest', 'own-key-only']) {
      const reply = await read(`/v1/models/${id}/stats`)
      expect([reply.status, reply.json]).toEqual([200, { model: id, ...empty }])
    }
    const rankings = await read('/v1/rankings')
    expect([rankings.status, rankings.json]).toEqual([200, { windows: { '7d': [], '30d': [] } }])
    // The reply is the same when the database is unavailable. This database is closed.
    const closed = await testDatabase()
    const away = new PublicUsage({
      db: closed.db,
      clock,
      log: silentLog,
      catalog: new Catalog(loadCatalog({ config: loadConfig({}), operatorFile: null }), () => ({ available: true, maintenance: false })),
      isPublic: true,
    })
    await closed.dispose()
    expect(JSON.parse((await away.rankings()).bytes.toString())).toEqual(rankings.json)
    expect(JSON.parse((await away.stats('gpt-4o')).bytes.toString())).toEqual({ model: 'gpt-4o', ...empty })
  })

  test('CAT-12 stats of an id that is not in the catalog get 404 model_not_found', async () => {
    for (const id of ['nobody', 'alpha/gpt', 'best', 'idle/stats', '%F0%9F%8D%9B']) {
      const reply = await read(`/v1/models/${id}/stats`)
      expect([reply.status, reply.json.error.code], id).toEqual([404, 'model_not_found'])
    }
    expect((await read('/v1/models/%E0%A4/stats')).status).toBe(400)
  })
})

describe('stats and rankings with usage', () => {
  beforeAll(async () => {
    const add = (model: string, day: number, shard: number, sums: readonly number[]) => app.db.exec(addDay, daysAgo(day), model, shard, sums)
    // The columns are requests, tokens, succeeded, failed, written tokens, written ms.
    await add('team/fast:v1.5', 0, 0, [10, 1000, 8, 1, 400, 2000])
    await add('team/fast:v1.5', 6, 3, [10, 500, 7, 0, 100, 1000])
    await add('team/fast:v1.5', 7, 0, [100, 9000, 0, 100, 9000, 1])
    await add('team/fast:v1.5', 29, 0, [1, 70, 1, 0, 1, 1])
    await add('team/fast:v1.5', 30, 0, [1, 1_000_000, 1, 0, 1, 1])
    await add('tie-b', 1, 0, [5, 300, 5, 0, 0, 0])
    await add('tie-a', 1, 0, [5, 300, 5, 0, 0, 0])
    await add('own-key-only', 0, 0, [99, 9_000_000, 99, 0, 0, 0])
    await add('no-platform-key', 0, 0, [99, 9_000_000, 99, 0, 0, 0])
    await add('alpha/found-on-a-key', 0, 0, [99, 9_000_000, 99, 0, 0, 0])
    await add('idle', 0, 0, [3, 0, 0, 0, 0, 0])
    // 90 calls between 91 and 128 ms, 10 between 1 and 1.09 s, and older calls outside the window.
    for (const [bucket, shard, requests] of [
      [52, 0, 10],
      [53, 1, 30],
      [54, 0, 30],
      [55, 0, 20],
      [80, 2, 10],
    ] as const)
      await app.db.exec(addLatency, daysAgo(2), 'team/fast:v1.5', bucket, shard, requests)
    await app.db.exec(addLatency, daysAgo(7), 'team/fast:v1.5', 120, 0, 100_000)
    await afresh()
  })

  test('CAT-11 SHAPE-38 stats cover 7 IST days including today: success rate, p50, p95, tokens per second. Values without data are null', async () => {
    const stats = (await read('/v1/models/team/fast:v1.5/stats')).json
    expect(stats).toEqual({
      model: 'team/fast:v1.5',
      window: '7d',
      success_rate: 0.9375,
      // Of 100 calls, the 50th is in bucket 54 (from 107.6 ms) and the 95th in bucket 80 (from 1024 ms). The values are the middles of these buckets.
      p50_latency_ms: Math.round(2 ** (54.5 / 8)),
      p95_latency_ms: Math.round(2 ** (80.5 / 8)),
      tokens_per_second: 166.67,
      requests: 20,
    })
    expect((await read('/v1/models/tie-a/stats')).json).toEqual({
      model: 'tie-a',
      window: '7d',
      success_rate: 1,
      p50_latency_ms: null,
      p95_latency_ms: null,
      tokens_per_second: null,
      requests: 5,
    })
    // All calls of this model were given up by clients. There were requests, but no call that could succeed or fail.
    expect((await read('/v1/models/idle/stats')).json).toMatchObject({ requests: 3, success_rate: null })
  })

  test('CAT-11 served, failed and refused calls count for the model that served them', async () => {
    const call = (body: object) => app.call('POST', '/v1/chat/completions', { model: 'real', messages: [{ role: 'user', content: 'hi' }], ...body })
    app.alpha.script([
      { usage: { prompt_tokens: 7, completion_tokens: 30, total_tokens: 37 } },
      { usage: { prompt_tokens: 7, completion_tokens: 30, total_tokens: 37 } },
    ])
    expect((await call({})).status).toBe(200)
    expect((await call({ stream: true })).status).toBe(200)
    app.alpha.script({ status: 400, body: { error: { message: 'no', type: 'invalid_request_error', code: 'bad' } } })
    expect((await call({})).status).toBe(400)
    app.alpha.script({ status: 500, body: 'broken' })
    expect((await call({})).status).toBeGreaterThanOrEqual(500)
    await app.gateway.app.limits.flushNow()
    await afresh()
    const { json } = await read('/v1/models/real/stats')
    expect(json).toMatchObject({ model: 'real', requests: 4, success_rate: 0.6667 })
    expect(json.p50_latency_ms).toBeGreaterThanOrEqual(0)
    expect(json.p95_latency_ms).toBeGreaterThanOrEqual(json.p50_latency_ms)
    expect(json.tokens_per_second).toBeGreaterThan(0)
    expect((await read('/v1/rankings')).json.windows['7d']).toContainEqual({ model: 'real', requests: 4, tokens: 74, rank: 4 })
  })

  test('CAT-15 SHAPE-39 rankings list platform models by tokens in 7 and 30 IST days, and models with equal tokens have a stable order', async () => {
    const { json } = await read('/v1/rankings')
    const withoutReal = (rows: { model: string }[]) => rows.filter(({ model }) => model !== 'real')
    expect(Object.keys(json.windows)).toEqual(['7d', '30d'])
    expect(withoutReal(json.windows['7d'])).toEqual([
      { model: 'team/fast:v1.5', requests: 20, tokens: 1500, rank: 1 },
      { model: 'tie-a', requests: 5, tokens: 300, rank: 2 },
      { model: 'tie-b', requests: 5, tokens: 300, rank: 3 },
    ])
    expect(withoutReal(json.windows['30d'])[0]).toEqual({ model: 'team/fast:v1.5', requests: 121, tokens: 10_570, rank: 1 })
  })

  test('ids with slashes, colons and dots work raw and percent-encoded, and the path after the id takes precedence', async () => {
    for (const id of ['team/fast:v1.5', 'team%2Ffast:v1.5', 'team%2ffast%3Av1.5', 'team/fast%3Av1%2E5'])
      expect((await read(`/v1/models/${id}/stats`)).json, id).toMatchObject({ model: 'team/fast:v1.5', requests: 20 })
    expect((await read('/v1/models/team/fast:v1.5')).json).toMatchObject({ id: 'team/fast:v1.5', object: 'model' })
    expect((await read('/v1/models/stats')).json.error.code).toBe('model_not_found')
    const wrong = await read('/v1/models/team/fast:v1.5/stats', {}, 'POST')
    expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'GET'])
  })
})

describe('public pages', () => {
  const paths = ['/v1/rankings', '/v1/models/tie-a/stats', '/v1/pricing/compare']

  test('public pages have a strong ETag, may be cached, and are 304 for a current copy', async () => {
    for (const path of paths) {
      const first = await read(path)
      const etag = first.headers.get('etag') ?? ''
      expect(etag).toMatch(/^"[\w-]+"$/)
      expect(first.headers.get('cache-control')).toMatch(/^public, max-age=\d+$/)
      for (const named of [etag, `W/${etag}`, `"other", W/${etag}`, '*']) {
        const again = await read(path, { 'if-none-match': named })
        expect([again.status, again.text, again.headers.get('etag'), again.headers.get('content-length')]).toEqual([304, '', etag, null])
      }
      expect((await read(path, { 'if-none-match': '"other"' })).status).toBe(200)
      const head = await read(path, {}, 'HEAD')
      expect([head.status, head.text, head.headers.get('etag'), head.headers.get('content-length')]).toEqual([
        200,
        '',
        etag,
        String(Buffer.byteLength(first.text)),
      ])
    }
  })

  test("public pages set no cookie, so a cache cannot give one person's cookie to another", async () => {
    const browser = { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors' }
    expect((await read('/v1/models', browser)).headers.get('set-cookie')).toContain('br_device')
    for (const path of paths) expect((await read(path, browser)).headers.get('set-cookie'), path).toBeNull()
  })

  test('200 concurrent requests query the database as often as one request', async () => {
    for (const path of ['/v1/rankings', '/v1/models/tie-a/stats']) {
      clock.advance(2 * 60_000 + 1)
      asked.length = 0
      const replies = await Promise.all(Array.from({ length: 200 }, () => read(path)))
      expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]))
      await until(() => asked.includes('usage.sum_latencies'))
      expect(asked.filter(name => name.startsWith('usage.sum_'))).toEqual(['usage.sum_models', 'usage.sum_latencies'])
      expect(asked.filter(name => name.startsWith('catalog.'))).toEqual([])
    }
  })

  test('public pages stay unchanged while the sums cannot be read', async () => {
    const before = await read('/v1/rankings')
    await app.db.script('alter table model_days rename to model_days_away')
    try {
      clock.advance(2 * 60_000 + 1)
      const failures = () => app.logLines.filter(line => line.includes('snapshot_failed')).length
      const known = failures()
      await until(async () => (await read('/v1/rankings')).status === 200 && failures() > known)
      const now = await read('/v1/rankings')
      expect([now.status, now.text]).toEqual([200, before.text])
    } finally {
      await app.db.script('alter table model_days_away rename to model_days')
    }
  })
})

test('with PUBLIC_STATS=off, only callers with a credential see the pages, and shared caches may not keep them', async () => {
  const closed = await startApp({ operatorFile, env: { PUBLIC_STATS: 'off' } })
  try {
    for (const path of ['/v1/rankings', '/v1/models/idle/stats', '/v1/models/nobody/stats']) {
      const stranger = await closed.call('GET', path, undefined, { token: null })
      expect([stranger.status, stranger.json.error.code]).toEqual([401, 'invalid_api_key'])
      expect(stranger.headers.get('www-authenticate')).toContain('Bearer')
    }
    for (const token of [closed.key, (await closed.newAgent('reader')).token]) {
      const reply = await closed.call('GET', '/v1/rankings', undefined, { token })
      expect([reply.status, reply.headers.get('cache-control')]).toEqual([200, 'private, max-age=60'])
    }
  } finally {
    await closed.stop()
  }
})

test('SHAPE-42 the API has one version: no endpoint negotiates a version, none is deprecated, and there is no changelog', async () => {
  const bindings = bindingsOf(endpointTable)
  for (const { at } of bindings) {
    expect(at).not.toMatch(/changelog|deprecat|sunset/i)
    // /v1 is the only version in the paths, and no path has a version parameter. Clients of Google's API have /v1beta in theirs.
    expect(at).not.toMatch(/\/v(?!1\b|1beta\/models\b)\d|\{(api_?)?version/i)
  }
  const document = openApiOf(bindings, {}, app.baseUrl, '1.0.0') as {
    paths: Record<string, Record<string, { deprecated?: boolean; parameters?: { name: string }[] }>>
  }
  for (const [path, methods] of Object.entries(document.paths))
    for (const [method, operation] of Object.entries(methods)) {
      expect(operation.deprecated ?? false, `${method} ${path}`).toBe(false)
      const names = (operation.parameters ?? []).map(({ name }) => name.toLowerCase())
      expect(
        names.filter(name => /^(accept-version|api-version|x-api-version)$/.test(name)),
        `${method} ${path}`,
      ).toEqual([])
    }
  // Every endpoint answers as if no version had been requested.
  for (const { at } of bindings) {
    const [method = '', path = ''] = at.split(' ')
    const filled = path.replace(/\{(\w+)\+?\}/g, '999999')
    const body = method === 'GET' || method === 'DELETE' ? undefined : {}
    const plain = await app.call(method, filled, body, { token: null })
    const asking = await app.call(method, `${filled}`, body, {
      token: null,
      headers: { 'accept-version': '2', 'api-version': '2019-01-01', 'x-api-version': '99' },
    })
    expect(asking.status, at).toBe(plain.status)
    for (const reply of [plain, asking])
      for (const header of ['deprecation', 'sunset', 'api-version', 'x-api-version', 'api-supported-versions', 'content-version'])
        expect(reply.headers.get(header), `${at} ${header}`).toBeNull()
  }
  for (const path of ['/changelog', '/v1/changelog', '/v1/versions', '/versions', '/v2/models']) expect((await read(path)).status, path).toBe(404)
})
