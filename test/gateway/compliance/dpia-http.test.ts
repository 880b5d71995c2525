import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { markdownTable, markdownText } from '../../../src/gateway/compliance/markdown.ts'
import { percentages } from '../../../src/gateway/compliance/percentages.ts'
import { otherRecords } from '../../../src/gateway/compliance/retention-posture.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { defaultOperatorFile, startApp, type TestApp, type TestReply } from '../../harness/app.ts'
import { chat, home } from './calls.ts'

const dpiaPath = '/v1/org/dpia'
const attestationPath = '/v1/org/residency/attestation'
const both = [dpiaPath, attestationPath]
/** A name that would become a table row, a link, HTML and an image if the report did not write it as plain text. */
const hostile = 'eve | x | [in](http://evil.test) <img src=x> `c` **b** www.evil.test'

const addLabels = statement<[orgId: number, day: string, count: number]>(
  'test.add_label_sums',
  `insert into usage_days_by_agent select $1::int, $2::date, 0, 'label ' || n, 'global', 1, 0, 1, 1, 0, 0, 1, 1 from generate_series(1, $3::int) as n`,
)
const addRoute = statement<[orgId: number, day: string, count: number]>(
  'test.add_route_sums',
  `insert into usage_days values ($1::int, $2::date, 'gone-model', 'gone', 'global', false, $3::int, 0, 1, 1, 0, 0, 1, 1)`,
)

/** The part of an assessment that covers each table. A new table needs an entry here and a sentence in retention-posture.ts about its data. */
const keptIn = new Map(
  Object.entries({
    content: 'content_log reply_cache',
    usage:
      'usage_events usage_events_default usage_days usage_days_by_agent usage_days_by_key usage_days_by_key_model usage_weeks_by_key usage_days_by_caller usage_days_by_member usage_hours_by_caller usage_day_latencies usage_hour_latencies usage_hours usage_anomalies token_counts model_days model_latencies runs run_parts run_days run_ends run_subagents run_subagent_sums refused_calls',
    memory: 'memory_changes memory_intents memory_objects memory_share_members memory_shares memory_usage memory_versions',
    people: 'users user_identities attributions org_members workspace_members invitations sign_in_grants',
    sessions: 'sessions cli_codes sign_in_links sign_in_states revoked_tokens',
    'audit trail': 'audit_log tool_audit_heads',
    'idempotency keys': 'idempotency_keys',
    'keys, agents and servers':
      'api_keys agents agent_trust agent_trust_audiences custom_endpoints provider_keys memory_stores memory_external_ids tool_servers tool_server_credentials tool_oauth_clients tool_connections tool_oauth_states tool_definitions tool_pins',
    'what people typed':
      'orgs workspaces sign_in_rules chains coding_profiles budgets period_budgets budget_zones budget_requests collections collection_versions collection_slugs collection_stars collection_alerts collection_monitors',
    mail: 'emails',
    webhooks: 'webhook_endpoints webhook_events webhook_deliveries',
    billing: 'billing_accounts billing_addresses ledger payments payment_orders payment_returns invoices invoice_series promo_codes promo_redemptions',
    batches: 'batches batch_files',
    journals: 'parked_records',
    none: `attestation_keys beats canary_use circuit_outages collection_canaries collection_checks collection_health control_log counters job_runs lasting_holds leases org_limits price_feeds
      processes route_maintenance schema_migrations signing_keys usage_retention`,
  }).flatMap(([place, tables]) => tables.split(/\s+/).map((table): [string, string] => [table, place])),
)

describe('data-protection impact assessments', () => {
  let app: TestApp
  let other: Awaited<ReturnType<TestApp['otherOrg']>>
  beforeAll(async () => {
    app = await startApp({
      env: { FOLDER_STORE: 'on' },
      operatorFile: urls => {
        const { providers, models } = defaultOperatorFile(urls)
        return { providers, models: models.map(model => ('id' in model && model.id === 'test-model' ? { ...model, openness: 'permissive' } : model)) }
      },
    })
    other = await app.otherOrg('Elsewhere')
    await chat(app, other, 'beta')
  })
  afterAll(() => app.stop())
  const assess = async (query = '', key = app.key) => (await app.call('GET', dpiaPath + query, undefined, { token: key })).json
  const report = (query = '?format=report'): Promise<TestReply> => app.call('GET', dpiaPath + query)

  test('DPIA-01 DPIA-04 DPIA-05 an assessment says which models processed data, where, how open these models are, and for which agents', async () => {
    const agent = await app.newAgent(hostile.slice(0, 60))
    await chat(app, home(app), 'alpha')
    await chat(app, home(app), 'indus', 'test-model', { 'x-br-agent-id': 'www.evil.test' })
    await chat(app, home(app), 'murky', 'global-only')
    await chat(app, { key: agent.token }, 'indus')
    await chat(app, { key: agent.token }, 'alpha')
    const embedded = await app.call('POST', '/v1/embeddings', { model: 'test-embed', input: 'secret words' })
    expect(embedded.status).toBe(200)

    const dpia = await assess()
    expect(dpia).toMatchObject({ schema: 'brigade.dpia.v1', org_id: app.orgId, org_name: 'Test Org', window: '30d', total_requests: 6 })
    expect(dpia.residency).toEqual({
      india: { requests: 2, pct: 33.33 },
      global: { requests: 3, pct: 50 },
      unknown: { requests: 1, pct: 16.67 },
      declared: { requests: 0, pct: 0 },
    })
    expect(dpia.purposes).toEqual([
      { purpose: 'text generation', requests: 5, models: 2 },
      { purpose: 'embeddings', requests: 1, models: 1 },
    ])
    expect(dpia.models.map((row: { model: string }) => row.model)).toEqual(['test-model', 'global-only', 'test-embed'])
    expect(dpia.models[0]).toMatchObject({ openness: 'permissive', purpose: 'text generation', providers: ['alpha', 'indus'], requests: 4 })
    expect(dpia.models[1]).toMatchObject({ openness: 'unknown', providers: ['murky'], residency: { unknown: { requests: 1, pct: 100 } } })
    expect(dpia.models[0].total_tokens).toBe(dpia.models[0].prompt_tokens + dpia.models[0].completion_tokens)
    expect(dpia.providers.map((row: { provider: string; requests: number; own: boolean }) => [row.provider, row.requests, row.own])).toEqual([
      ['alpha', 3, false],
      ['indus', 2, false],
      ['murky', 1, false],
    ])
    expect(dpia.audit_log).toHaveLength(4)
    expect(dpia.audit_log).toContainEqual(
      expect.objectContaining({ model: 'test-model', provider: 'indus', residency: 'india', openness: 'permissive', requests: 2, errors: 0, own_key: false }),
    )
    expect(dpia.audit_log).toContainEqual(expect.objectContaining({ model: 'global-only', provider: 'murky', residency: 'unknown', openness: 'unknown' }))
    expect(dpia.audit_log[0].first_day).toMatch(/^\d{4}-\d\d-\d\d$/)
    expect(dpia.agents).toEqual([
      expect.objectContaining({
        agent_id: agent.id,
        name: hostile.slice(0, 60),
        requests: 2,
        residency: expect.objectContaining({ india: { requests: 1, pct: 50 }, unknown: { requests: 0, pct: 0 } }),
      }),
    ])
    expect(dpia.agent_labels).toEqual([expect.objectContaining({ label: 'www.evil.test', requests: 1 })])
    expect(dpia).toMatchObject({ without_agent: { requests: 3 }, agents_capped: false, unlisted_agent_requests: 0 })
    expect(await app.call('GET', dpiaPath).then(({ text }) => text)).not.toContain('secret words')
    expect((await assess('?window=0d')).error.code).toBe('bad_request')
  })

  test('DPIA-02 the report in Markdown has the same facts as the JSON, and names in it are plain text', async () => {
    await app.call('PATCH', '/me/org', { name: hostile.slice(0, 60) }, { cookie: await app.signIn() })
    const { status, headers, text } = await report()
    expect([status, headers.get('content-type')]).toEqual([200, 'text/markdown; charset=utf-8'])
    expect(text).toContain('| in India | 2 | 33.33 % |')
    expect(text).toContain('| not known | 1 | 16.67 % |')
    expect(text).toContain('| test-model | text generation | permissive | alpha / indus | 4 |')
    expect(text).toContain('eve &#124; x &#124; &#91;in&#93;&#40;http&#58;//evil.test&#41; &#60;img')
    expect(text).not.toMatch(/<img|\]\(http|www\.evil|secret words/)
    // Every row of a table has as many cells as the heading.
    for (const block of text.split('\n\n').filter(part => part.startsWith('|')))
      expect(new Set(block.split('\n').map(line => line.replaceAll('\\|', '').split('|').length)).size, block).toBe(1)
  })

  test('DPIA-06 an assessment says that content is not stored, or for how many days; it names the kind of the memory store, without credentials', async () => {
    const cookie = await app.signIn()
    expect((await assess()).content_retention).toMatchObject({ mode: 'zero', days: 0, stored: expect.stringMatching(/^Nothing/) })
    expect((await assess()).memory).toMatchObject({ configured: false, store: null })
    await app.call('PUT', '/me/org/data-retention', { days: 7 }, { cookie })
    expect((await app.call('PUT', '/v1/me/memory-store', { store: 'folder' })).status).toBe(200)
    const dpia = await assess()
    expect(dpia.content_retention).toMatchObject({
      mode: 'window',
      days: 7,
      stored: expect.stringContaining('7 days'),
      where: expect.stringContaining('encrypted'),
    })
    expect(dpia.memory).toMatchObject({ configured: true, store: 'folder' })
    expect(Object.keys(dpia.memory)).toEqual(['configured', 'store', 'stored'])
    expect(dpia.usage_records.kept_days).toBe(400)
    const kept = new Map(dpia.other_records.map((row: { what: string; stored: string; kept: string }) => [row.what, `${row.stored} ${row.kept}`]))
    expect(kept.get('audit trail')).toMatch(/IP address.* 400 days/)
    expect(kept.get('idempotency keys')).toMatch(/HMAC of the body.* 24 hours/)
    expect([...kept.keys()]).toEqual(expect.arrayContaining(['people', 'sessions', 'mail', 'webhooks', 'billing', 'journals', 'logs, traces, backups']))
    expect((await report()).text).toContain('a window of 7 days')
    await app.call('PUT', '/me/org/data-retention', { days: 0 }, { cookie })
    expect((await assess()).content_retention.mode).toBe('zero')
  })

  test('agents beyond the maximum length of the list count in the totals', async () => {
    const org = await app.otherOrg('Many Agents')
    const day = new Date(Date.now() + 5.5 * 3600_000).toISOString().slice(0, 10)
    await app.db.exec(addLabels, org.orgId, day, 1203)
    await app.db.exec(addRoute, org.orgId, day, 1203)
    const dpia = await assess('?window=1d', org.key)
    expect(dpia.agent_labels).toHaveLength(1000)
    expect(dpia).toMatchObject({ total_requests: 1203, agents_capped: true, unlisted_agent_requests: 203 })
    expect(dpia.models).toEqual([expect.objectContaining({ model: 'gone-model', openness: 'unknown', purpose: 'unknown' })])
  })

  test('ATT-10 DPIA-03 PERM-11 SCOPE-12 the role or one capability of the person behind a key or session decides about access; agents are refused', async () => {
    const met = async (path: string, options: { token?: string; cookie?: string }): Promise<unknown> => {
      const { status, json } = await app.call('GET', path, undefined, options)
      return status === 200 ? 200 : [status, json.error.code]
    }
    const member = await app.newMember('member')
    const memberKey = (await app.call('POST', '/me/keys', {}, { cookie: member.cookie })).json.key
    const auditor = await app.newMember('member', { capabilities: ['cost:org:view'] })
    const auditorKey = (await app.call('POST', '/me/keys', {}, { cookie: auditor.cookie })).json.key
    const { token: agent } = await app.newAgent('agent of an owner')
    for (const path of both) {
      for (const role of ['owner', 'admin'] as const) expect(await met(path, { cookie: (await app.newMember(role)).cookie }), role).toBe(200)
      for (const capability of ['usage:org:view', 'cost:org:view', 'audit:view'])
        expect(await met(path, { cookie: (await app.newMember('member', { capabilities: [capability] })).cookie }), capability).toBe(200)
      expect(await met(path, { token: app.key })).toBe(200)
      expect(await met(path, { token: (await app.newKey({ scope: 'inference' })).key })).toBe(200)
      expect(await met(path, { token: auditorKey })).toBe(200)
      expect(await met(path, { cookie: member.cookie })).toEqual([403, 'forbidden'])
      expect(await met(path, { token: memberKey })).toEqual([403, 'forbidden'])
      expect(await met(path, { token: (await app.newKey({ withUser: false })).key })).toEqual([403, 'forbidden'])
      expect(await met(path, { token: agent })).toEqual([403, 'forbidden'])
      expect((await app.call('GET', path, undefined, { token: null })).status).toBe(401)
    }
  })

  test('PERM-11 a person who loses the capability cannot read from the next call on, also with a session or key that was used just before', async () => {
    const cookie = await app.signIn()
    const auditor = await app.newMember('member', { capabilities: ['audit:view'] })
    const key = (await app.call('POST', '/me/keys', {}, { cookie: auditor.cookie })).json.key
    const all = async (): Promise<number[]> => {
      const replies = both.flatMap(path => [app.call('GET', path, undefined, { cookie: auditor.cookie }), app.call('GET', path, undefined, { token: key })])
      return (await Promise.all(replies)).map(({ status }) => status)
    }
    expect(await all()).toEqual([200, 200, 200, 200])
    expect((await app.call('PATCH', `/me/members/${auditor.userId}`, { capabilities: [] }, { cookie })).status).toBe(200)
    expect(await all()).toEqual([403, 403, 403, 403])
  })

  test('neither document contains calls of other organisations', async () => {
    for (const path of both)
      for (const format of ['json', 'report']) {
        const ours = await app.call('GET', `${path}?format=${format}`)
        expect([ours.status, ours.text.includes('beta')], path).toEqual([200, false])
        const theirs = await app.call('GET', `${path}?format=${format}`, undefined, { token: other.key })
        expect([theirs.text.includes('beta'), /\b(alpha|indus|murky|eve)\b/.test(theirs.text)], path).toEqual([true, false])
      }
    expect(await assess('', other.key)).toMatchObject({ org_id: other.orgId, total_requests: 1, agents: [], agent_labels: [] })
  })
})

test('every table of the schema is covered by an assessment, or has no data about people and calls', () => {
  const tables = [...readFileSync(new URL('../../../migrations/schema.sql', import.meta.url), 'utf8').matchAll(/^create table (\w+)/gm)].map(([, name]) => name)
  expect(tables.length).toBeGreaterThan(60)
  expect(tables.filter(name => name === undefined || !keptIn.has(name))).toEqual([])
  const named = [...otherRecords({ auditDays: 1, webhookDays: 1, sessionS: 1, journalMs: 1 }).map(({ what }) => what), 'content', 'usage', 'memory', 'none']
  expect([...new Set(keptIn.values())].filter(place => !named.includes(place))).toEqual([])
})

test('shares add up to 100, and a share is 100 only when it is everything', () => {
  expect(percentages([0, 0])).toEqual([0, 0])
  expect(percentages([1, 2])).toEqual([33.33, 66.67])
  expect(percentages([1, 1, 1])).toEqual([33.34, 33.33, 33.33])
  expect(percentages([1_000_000, 1])).toEqual([99.99, 0.01])
  expect(percentages([0, 1_000_000, 1])).toEqual([0, 99.99, 0.01])
  expect(percentages([7, 0, 0])).toEqual([100, 0, 0])
  for (let india = 0; india <= 400; india++) {
    const [a = 0, b = 0] = percentages([india, 400 - india])
    expect(Math.round((a + b) * 100)).toBe(10_000)
    expect(Math.abs(a - india / 4)).toBeLessThan(0.01)
  }
})

test('text in Markdown is one line without markup', () => {
  expect(markdownText('a\nb\u202ec\u0000')).toBe('a b c')
  expect(markdownText('openai/gpt-4.1')).toBe('openai/gpt-4.1')
  expect(markdownText('byoe:mine')).toBe('byoe:mine')
  expect(markdownText('नमस्ते दुनिया')).toBe('नमस्ते दुनिया')
  expect(markdownText('<b>|`_*~&\\')).toBe('&#60;b&#62;&#124;&#96;&#95;&#42;&#126;&#38;&#92;')
  expect(markdownText('https://a WWW.b')).toBe('https&#58;//a WWW&#46;b')
  expect(markdownTable(['', 'n'], [['a|b', 1]])).toBe('|  | n |\n| --- | ---: |\n| a&#124;b | 1 |')
})
