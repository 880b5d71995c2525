import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp, type TestOptions, until } from '../harness/app.ts'
import { movableClock } from '../harness/clock.ts'
import { type OtlpCollector, type ReceivedSpan, startOtlpCollector } from '../harness/otlp-collector.ts'
import { type Answer, ask, parsed } from '../harness/prometheus.ts'
import { mcpClients } from '../mcp/mcp-clients.ts'

const errorCode = (answer: Answer): string => JSON.parse(answer.text).error.code
const token = 'figures-token-of-the-test'
/** Texts of callers and models. None of them may be in metrics, traces or the log. */
const said = { prompt: 'zebrafish-prompt-word', answer: 'quokka-answer-word', tool: 'axolotl-model-word' }
const asked = { messages: [{ role: 'user', content: said.prompt }], max_tokens: 60 }
const usage = { prompt_tokens: 100, completion_tokens: 50, total_tokens: 150 }

describe('OPS-01 metrics for Prometheus with bounded labels, and traces by the GenAI conventions when a collector is configured', () => {
  let app: TestApp
  let collector: OtlpCollector
  let isStopped = false
  const clients = mcpClients(() => app)
  beforeAll(async () => {
    collector = await startOtlpCollector()
    app = await startApp({
      env: {
        METRICS_TOKEN: token,
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url.replace('//', '//me:collector-password@'),
        OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=home%20team,authorization=Basic abc',
        OTEL_SERVICE_NAME: 'gateway-of-the-test',
        CIRCUIT_FAILURES: '1000',
        FOLDER_STORE: 'on',
      },
    })
  })
  afterAll(async () => {
    if (!isStopped) await app?.stop()
    await collector?.close()
  })
  beforeEach(() => {
    for (const upstream of [app.alpha, app.beta, app.indus]) {
      upstream.reset()
      upstream.script(() => ({ chunks: [said.answer, ' more'], usage }))
    }
  })
  afterEach(() => clients.closeAll())

  const scrapeText = async (): Promise<string> => {
    const reply = await ask(`${app.baseUrl}/metrics`, { authorization: `Bearer ${token}` })
    expect(reply.status).toBe(200)
    expect(reply.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8')
    return reply.text
  }
  const scrape = async (): Promise<Map<string, number>> => parsed(await scrapeText())
  /** Expects that `work` increases these values by these amounts. A request is counted when its connection is done with it. */
  const expectGrowth = async (work: () => Promise<unknown>, wanted: Readonly<Record<string, number>>): Promise<void> => {
    const before = await scrape()
    await work()
    let after = before
    const growth = () => Object.fromEntries(Object.keys(wanted).map(key => [key, (after.get(key) ?? 0) - (before.get(key) ?? 0)]))
    await until(async () => {
      after = await scrape()
      return JSON.stringify(growth()) === JSON.stringify(wanted)
    }, 3000).catch(() => expect(growth()).toEqual(wanted))
  }
  const chat = (body: object, options?: Parameters<TestApp['call']>[3]) => app.call('POST', '/v1/chat/completions', { ...asked, ...body }, options)
  /** Waits until all spans of a trace have arrived, and returns them. */
  const trace = async (isWhole: (spans: ReceivedSpan[]) => boolean, traceId?: string): Promise<ReceivedSpan[]> => {
    const found = () => collector.spans.filter(span => traceId === undefined || span.traceId === traceId)
    await until(() => isWhole(found()))
    return found()
  }
  let traces = 0
  /** Returns a new trace with the span of a caller. */
  const caller = (isSampled = true) => {
    const traceId = (++traces).toString(16).padStart(32, 'a')
    return { traceId, spanId: '00f067aa0ba902b7', traceparent: `00-${traceId}-00f067aa0ba902b7-0${isSampled ? 1 : 0}` }
  }

  test('a call is counted by provider, model, kind and outcome, with tokens, rupees and times', async () => {
    await expectGrowth(() => chat({ model: 'alpha-only' }), {
      'brigade_inference_calls_total{provider="alpha",model="alpha-only",kind="chat",outcome="ok"}': 1,
      'brigade_inference_tokens_total{provider="alpha",model="alpha-only",direction="input"}': 100,
      'brigade_inference_tokens_total{provider="alpha",model="alpha-only",direction="output"}': 50,
      'brigade_inference_duration_seconds_count{provider="alpha",kind="chat"}': 1,
      'brigade_inference_first_byte_seconds_bucket{provider="alpha",kind="chat",le="+Inf"}': 1,
      'brigade_http_requests_total{endpoint="/v1/chat/completions",method="POST",status="2xx"}': 1,
      'brigade_http_request_duration_seconds_count{endpoint="/v1/chat/completions",method="POST"}': 1,
    })
    const values = await scrape()
    // 100 × ₹10 + 50 × ₹40 per million tokens.
    expect(values.get('brigade_inference_value_rupees_total{provider="alpha",model="alpha-only"}')).toBeCloseTo(0.003, 9)
    expect(values.get('brigade_inference_cost_rupees_total{provider="alpha",model="alpha-only"}')).toBeCloseTo(0.003, 9)
  })

  test('streams, failures, refusals and tools are counted too', async () => {
    await expectGrowth(() => chat({ model: 'alpha-only', stream: true }), {
      'brigade_inference_calls_total{provider="alpha",model="alpha-only",kind="chat",outcome="ok"}': 1,
      'brigade_inference_first_byte_seconds_count{provider="alpha",kind="chat"}': 1,
    })
    app.alpha.script(() => ({ status: 500, body: { error: { message: said.answer } } }))
    await expectGrowth(() => chat({ model: 'alpha-only' }), {
      'brigade_inference_calls_total{provider="alpha",model="alpha-only",kind="chat",outcome="failed"}': 1,
      'brigade_provider_failures_total{provider="alpha",reason="500"}': 1,
      'brigade_http_requests_total{endpoint="/v1/chat/completions",method="POST",status="5xx"}': 1,
      'brigade_errors_total{code="all_routes_failed"}': 1,
    })
    await expectGrowth(() => chat({ model: 'alpha-only' }, { token: 'br-wrong' }), {
      'brigade_errors_total{code="invalid_api_key"}': 1,
      'brigade_http_requests_total{endpoint="/v1/chat/completions",method="POST",status="4xx"}': 1,
    })
    const client = await clients.eras[0][1]()
    app.alpha.script(() => ({ chunks: [said.answer], usage }))
    await expectGrowth(
      async () => {
        await client.call('chat', { model: 'alpha-only', prompt: said.prompt })
        await client.call('chat', { model: said.tool, prompt: said.prompt })
      },
      {
        'brigade_mcp_tool_calls_total{tool="chat",outcome="ok"}': 1,
        'brigade_mcp_tool_calls_total{tool="chat",outcome="error"}': 1,
        'brigade_mcp_tool_duration_seconds_count{tool="chat"}': 2,
        'brigade_inference_calls_total{provider="alpha",model="alpha-only",kind="chat",outcome="ok"}': 1,
        'brigade_errors_total{code="model_not_found"}': 1,
      },
    )
  })

  test('metrics of the process are included', async () => {
    await app.call('PUT', '/v1/me/memory-store', { store: 'folder' })
    expect((await app.call('PUT', '/v1/me/memory/o?key=agents/notes', 'a note')).status).toBeLessThan(300)
    await app.gateway.app.jobs.runOnce('once.sweep')
    const values = await scrape()
    expect(values.get('brigade_ready')).toBe(1)
    expect(values.get('brigade_database_away')).toBe(0)
    expect(values.get('brigade_circuits_open{provider="alpha"}')).toBe(0)
    expect(values.get('brigade_job_runs_total{job="once.sweep",outcome="ok"}')).toBe(1)
    expect(values.get('brigade_database_round_trips_total')).toBeGreaterThan(0)
    expect(values.get('brigade_control_log_lag_seconds')).toBeLessThan(60)
    for (const name of [
      'brigade_journal_unflushed_bytes',
      'brigade_journal_lag_seconds',
      'brigade_journal_flush_failures_total',
      'brigade_limits_acquires_total',
    ])
      expect(values.has(name), name).toBe(true)
    if (app.db.kind === 'postgres') expect(values.has('brigade_database_connections{state="idle"}')).toBe(true)
    const names = [...values.keys()].join('\n')
    for (const name of [
      'process_cpu_seconds_total',
      'nodejs_eventloop_lag_p99_seconds',
      'process_resident_memory_bytes',
      'brigade_build_info{version=',
      'brigade_memory_store_calls_total{operation="',
    ])
      expect(names).toContain(name)
  })

  test("the number of labels does not grow with callers' input, and no label names a caller", { timeout: 60_000 }, async () => {
    const before = (await scrape()).size
    const methods = ['GET', 'POST', 'PROPFIND', 'MKCOL', 'SEARCH', 'PURGE']
    for (let round = 0; round < 20; round++)
      await Promise.all(
        Array.from({ length: 25 }, async (_, index) => {
          const word = `${said.tool}-${round}-${index}`
          await chat({ model: word }, { headers: { 'x-br-agent-id': `${said.tool}-${round % 5}` } })
          await ask(`${app.baseUrl}/${word}/${word}?${word}=1`, {}, methods[index % methods.length])
        }),
      )
    await until(async () => ((await scrape()).get('brigade_errors_total{code="model_not_found"}') ?? 0) >= 500)
    const text = await scrapeText()
    expect(parsed(text).size - before).toBeLessThan(150)
    for (const word of [...Object.values(said), app.key, token, 'Test Org', 'x-br-agent-id']) expect(text).not.toContain(word)
    expect(text).not.toMatch(/\b(org|key|agent|user)(_?id)?="/)
  })

  test('only the token gives access to the metrics', async () => {
    const url = `${app.baseUrl}/metrics`
    for (const headers of [{}, { authorization: 'Bearer wrong' }, { authorization: `Bearer ${token}x` }, { authorization: `Bearer ${app.key}` }] as Record<
      string,
      string
    >[]) {
      const reply = await ask(url, headers)
      expect([reply.status, errorCode(reply)]).toEqual([401, 'invalid_api_key'])
      expect(reply.text).toContain('METRICS_TOKEN')
      expect(reply.text).not.toContain(token)
    }
    expect((await ask(url, { authorization: `bearer ${token}`, 'x-forwarded-for': '203.0.113.7' })).status).toBe(200)
  })

  test("a call is a server span under its caller's span, with one client span for each attempt", async () => {
    const from = caller()
    app.alpha.script([{ status: 503, body: {} }])
    const reply = await chat({ model: 'test-model' }, { headers: { traceparent: from.traceparent, tracestate: 'vendor=1' } })
    expect(reply.status).toBe(200)
    const spans = await trace(found => found.length === 3, from.traceId)
    const [server, ...dials] = spans.toSorted((a, b) => a.kind - b.kind)
    expect(server).toMatchObject({ name: 'chat test-model', kind: 2, parentSpanId: from.spanId, traceState: 'vendor=1', isError: false })
    const served = reply.headers.get('x-br-provider')
    expect(server?.attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': served,
      'gen_ai.request.model': 'test-model',
      'gen_ai.response.model': 'test-model',
      'gen_ai.usage.input_tokens': 100,
      'gen_ai.usage.output_tokens': 50,
      'brigade.request_id': reply.headers.get('x-request-id'),
      'brigade.outcome': 'ok',
    })
    for (const dial of dials) expect(dial).toMatchObject({ kind: 3, parentSpanId: server?.spanId })
    expect(dials.find(dial => dial.isError)).toMatchObject({
      name: 'chat alpha-upstream',
      attributes: { 'gen_ai.provider.name': 'alpha', 'error.type': '503', 'server.address': '127.0.0.1', 'server.port': Number(new URL(app.alpha.url).port) },
    })
    expect(dials.find(dial => !dial.isError)?.attributes).toMatchObject({ 'gen_ai.provider.name': served, 'gen_ai.usage.output_tokens': 50 })
    // Providers do not get the trace headers, because they belong to other companies.
    for (const { requests } of [app.alpha, app.beta, app.indus])
      for (const { headers } of requests) expect([headers['traceparent'], headers['tracestate']]).toEqual([undefined, undefined])
    // The log line of the failed attempt has the ids of the trace and of the call.
    const line = app.logLines.map(text => JSON.parse(text)).findLast(({ msg }) => msg === 'route failed')
    expect(line).toMatchObject({ traceId: from.traceId, requestId: reply.headers.get('x-request-id'), provider: 'alpha' })
  })

  test('the span of a stream ends with its last byte, and the span of a refused call has the error code that the caller got', async () => {
    const streamed = caller()
    await chat({ model: 'alpha-only', stream: true }, { headers: { traceparent: streamed.traceparent } })
    const [server] = (await trace(found => found.length === 2, streamed.traceId)).filter(({ kind }) => kind === 2)
    expect(server?.attributes).toMatchObject({
      'gen_ai.request.stream': true,
      'gen_ai.response.time_to_first_chunk': expect.any(Number),
      'brigade.outcome': 'ok',
    })
    const refused = caller()
    await chat({ model: said.tool }, { headers: { traceparent: refused.traceparent } })
    const [span, ...more] = await trace(found => found.length > 0, refused.traceId)
    expect(more).toEqual([])
    // The name of an unknown model is text of the caller, so the span does not contain it.
    expect(span).toMatchObject({ name: 'chat', isError: true, attributes: { 'error.type': 'model_not_found', 'http.response.status_code': 404 } })
    const failed = caller()
    app.alpha.script(() => ({ status: 500, body: {} }))
    await chat({ model: 'alpha-only' }, { headers: { traceparent: failed.traceparent } })
    const spans = await trace(found => found.length === 2, failed.traceId)
    expect(spans.find(({ kind }) => kind === 2)).toMatchObject({
      isError: true,
      attributes: { 'error.type': 'all_routes_failed', 'http.response.status_code': 502 },
    })
    expect(app.logLines.some(line => line.includes('"request failed"') && line.includes(failed.traceId))).toBe(true)
  })

  test('a call whose caller does not sample it is not traced, and an invalid traceparent is ignored', async () => {
    const silent = caller(false)
    expect((await chat({ model: 'alpha-only' }, { headers: { traceparent: silent.traceparent } })).status).toBe(200)
    const before = collector.spans.length
    const odd = await chat({ model: 'alpha-only' }, { headers: { traceparent: `00-${'0'.repeat(32)}-00f067aa0ba902b7-01` } })
    const mine = (): ReceivedSpan[] =>
      collector.spans.slice(before).filter(({ attributes }) => attributes['brigade.request_id'] === odd.headers.get('x-request-id'))
    await until(() => mine().length === 1)
    expect(mine()[0]).toMatchObject({ parentSpanId: '' })
    expect(mine()[0]?.traceId).not.toMatch(/^0+$/)
    expect(collector.spans.some(({ traceId }) => traceId === silent.traceId)).toBe(false)
  })

  test('a tool has a span, and the call that it makes has a span under it', async () => {
    const from = caller()
    const client = await clients.eras[0][1](app.key, { traceparent: from.traceparent })
    await client.call('chat', { model: 'alpha-only', prompt: said.prompt })
    const spans = await trace(found => found.length === 3, from.traceId)
    const tool = spans.find(({ name }) => name === 'tools/call chat')
    expect(tool).toMatchObject({ parentSpanId: from.spanId, attributes: { 'mcp.method.name': 'tools/call', 'gen_ai.tool.name': 'chat' } })
    expect(spans.find(({ name }) => name === 'chat alpha-only')).toMatchObject({ parentSpanId: tool?.spanId })
  })

  test('a failing collector does not affect calls, and its failure is logged once', async () => {
    collector.answer(400)
    const failures = async () => (await scrape()).get('brigade_telemetry_export_failures_total{signal="traces"}') ?? 0
    expect((await chat({ model: 'alpha-only' })).status).toBe(200)
    await until(async () => (await failures()) >= 1)
    expect((await chat({ model: 'alpha-only' })).status).toBe(200)
    await until(async () => (await failures()) >= 2)
    collector.answer(200)
    expect((await chat({ model: 'alpha-only' })).status).toBe(200)
    await until(() => app.logLines.some(line => line.includes('telemetry export works again')))
    expect(app.logLines.filter(line => line.includes('"telemetry export failed"'))).toHaveLength(1)
  })

  test('a stop sends the remaining spans; durations and tokens have the names of the conventions; no content is sent', async () => {
    const last = caller()
    await chat({ model: 'alpha-only' }, { headers: { traceparent: last.traceparent } })
    isStopped = true
    await app.stop()
    expect(collector.spans.filter(({ traceId }) => traceId === last.traceId)).toHaveLength(2)
    const points = (metric: string, more: object) =>
      collector.points.filter(point => point.metric === metric && Object.entries(more).every(([k, v]) => point.attributes[k] === v))
    const labels = { 'gen_ai.operation.name': 'chat', 'gen_ai.provider.name': 'alpha', 'gen_ai.request.model': 'alpha-only' }
    expect(points('gen_ai.client.operation.duration', labels)[0]).toMatchObject({ unit: 's', bounds: expect.arrayContaining([0.01, 81.92]) })
    expect(points('gen_ai.client.operation.duration', { ...labels, 'error.type': '500' })).toHaveLength(1)
    expect(points('gen_ai.server.request.duration', labels)[0]?.count).toBeGreaterThan(1)
    expect(points('gen_ai.server.time_to_first_token', labels)[0]?.count).toBeGreaterThan(1)
    expect(points('gen_ai.client.token.usage', { ...labels, 'gen_ai.token.type': 'input' })[0]).toMatchObject({
      unit: '{token}',
      bounds: expect.arrayContaining([1, 67_108_864]),
    })
    expect(new Set(collector.points.map(({ attributes }) => JSON.stringify(attributes))).size).toBeLessThan(40)
    expect(collector.resources[0]).toMatchObject({
      'service.name': 'gateway-of-the-test',
      'service.version': expect.any(String),
      'service.instance.id': expect.any(String),
    })
    expect(collector.headers[0]).toMatchObject({ 'x-tenant': 'home team', authorization: 'Basic abc' })
    for (const [where, text] of [
      ['telemetry', collector.text()],
      ['log', app.logLines.join('\n')],
    ] as const)
      for (const word of [...Object.values(said), app.key, token, 'alpha-platform-secret', 'Basic abc', 'collector-password'])
        expect(text.includes(word), `${word} in ${where}`).toBe(false)
  })
})

describe('probes', () => {
  const open: TestApp[] = []
  const start = async (options: TestOptions = {}): Promise<TestApp> => {
    const app = await startApp(options)
    open.push(app)
    return app
  }
  afterAll(async () => {
    for (const app of open) await app.stop()
  })

  test('without a token, metrics can be read only from this machine; METRICS=off hides them', async () => {
    const [app, off] = await Promise.all([start(), start({ env: { METRICS: 'off' } })])
    const url = `${app.baseUrl}/metrics`
    expect((await ask(url)).status).toBe(200)
    expect((await ask(url, { host: 'localhost:1' })).status).toBe(200)
    const foreign = [{ 'x-forwarded-for': '127.0.0.1' }, { forwarded: 'for=127.0.0.1' }, { 'x-real-ip': '127.0.0.1' }, { host: 'rebound.example' }] as Record<
      string,
      string
    >[]
    for (const headers of foreign) {
      const reply = await ask(url, headers)
      expect([reply.status, errorCode(reply)]).toEqual([403, 'forbidden'])
      expect(reply.text).toContain('METRICS_TOKEN')
    }
    const hidden = await ask(`${off.baseUrl}/metrics`)
    expect([hidden.status, errorCode(hidden)]).toEqual([404, 'not_found'])
    expect((await off.call('POST', '/v1/chat/completions', { ...asked, model: 'alpha-only' })).status).toBe(200)
    expect(JSON.parse((await ask(`${off.baseUrl}/readyz`)).text).status).toBe('ready')
  })

  test('when the database is unavailable for too long, the process is not ready but still alive', async () => {
    const clock = movableClock()
    const app = await start({ clock, env: { BEAT_MS: '600000', OFFLINE_MAX_MS: '600000', JOURNAL_FLUSH_MS: '100' } })
    expect(JSON.parse((await ask(`${app.baseUrl}/readyz`)).text)).toEqual({
      status: 'ready',
      checks: { process: 'running', database: 'ok', journal: 'ok', news: 'ok' },
    })
    clock.advance(700_000)
    const away = await ask(`${app.baseUrl}/readyz`)
    expect([away.status, Number(away.headers['retry-after']) > 0, JSON.parse(away.text)]).toMatchObject([
      503,
      true,
      { status: 'not_ready', checks: { database: 'away' } },
    ])
    expect((await ask(`${app.baseUrl}/livez`)).status).toBe(200)
    const health = await app.call('GET', '/health', undefined, { token: null })
    expect([health.status, health.json.status]).toEqual([200, 'database_away'])
    expect(parsed((await ask(`${app.baseUrl}/metrics`)).text).get('brigade_ready')).toBe(0)
    await app.gateway.app.limits.beat()
    expect((await ask(`${app.baseUrl}/readyz`)).status).toBe(200)
  })

  test('while a process drains, probes on new connections report it, and calls are refused', async () => {
    const app = await start({ env: { ANON_RPM: '5' } })
    // Probes do not count against the rate limit for anonymous requests.
    for (let n = 0; n < 20; n++) for (const path of ['/livez', '/readyz', '/health']) expect((await ask(app.baseUrl + path)).status).toBe(200)
    app.alpha.script({ chunks: ['one', 'two'], holdAfterChunks: 1 })
    const stream = app.call('POST', '/v1/chat/completions', { ...asked, model: 'alpha-only', stream: true })
    await app.alpha.arrived(1)
    const stopped = app.gateway.stop()
    await until(async () => (await ask(`${app.baseUrl}/readyz`)).status === 503)
    const reply = await ask(`${app.baseUrl}/readyz`)
    expect([reply.headers['retry-after'] !== undefined, JSON.parse(reply.text).checks.process]).toEqual([true, 'draining'])
    expect((await ask(`${app.baseUrl}/livez`)).status).toBe(200)
    expect(JSON.parse((await ask(`${app.baseUrl}/health`)).text).status).toBe('draining')
    const turned = await app.call('POST', '/v1/chat/completions', { ...asked, model: 'alpha-only' })
    expect([turned.status, turned.headers.get('connection')]).toEqual([503, 'close'])
    app.alpha.release()
    expect((await stream).text).toContain('[DONE]')
    await stopped
    await expect(ask(`${app.baseUrl}/livez`)).rejects.toThrow()
    open.splice(open.indexOf(app), 1)
  })
})
