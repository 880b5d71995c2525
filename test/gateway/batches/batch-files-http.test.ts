import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { uinrFromInr } from '../../../src/platform/values/money.ts'
import { startApp, type TestApp, until } from '../../harness/app.ts'
import { type BatchUpstream, startBatchUpstream } from '../../harness/batch-upstream.ts'
import { batchFile, batchKeys, jsonl, linesOf } from '../../harness/batch-world.ts'
import { movableClock } from '../../harness/clock.ts'
import { type FileUpstream, startFileUpstream } from '../../harness/file-upstream.ts'

const dayMs = 24 * 3600_000
const revive = statement<[id: string]>('test.revive_file', `update batch_files set expires_at = created_at + interval '7 days' where id = $1::text`)
const refuseRows = statement<[]>('test.refuse_files', `alter table batch_files add constraint refused check (bytes < 0) not valid`)
const takeRows = statement<[]>('test.take_files', `alter table batch_files drop constraint refused`)
/** Writes copies of a file. */
const multiply = statement<[id: string, count: number]>(
  'test.multiply_file',
  `insert into batch_files select (jsonb_populate_record(f, jsonb_build_object('id', f.id || '-' || n, 'upstream_id', f.upstream_id || '-' || n))).*
   from batch_files f, generate_series(1, $2::int) as n where f.id = $1::text`,
)
const filesOf = statement<[orgId: number], { count: number }>('test.files_of', `select count(*)::int as "count" from batch_files where org_id = $1::int`)

/** Keys of a payment provider that is never called here. They switch billing on. */
const billingOn = { RAZORPAY_KEY_ID: 'rzp_test_key', RAZORPAY_KEY_SECRET: 'rzp-test-secret' }
/** Lines for the provider whose files the tests look at. */
const second = { model: 'second-batch' }

describe('files of batches', () => {
  /** The pauses of this process. A heavy turn ends with one. */
  let pauses = 0
  const moved = movableClock()
  const clock = {
    ...moved,
    sleep(ms: number, signal?: AbortSignal) {
      pauses++
      return moved.sleep(ms, signal)
    },
  }
  let app: TestApp
  let upstream: BatchUpstream
  let own: FileUpstream
  let openai: OpenAI
  beforeAll(async () => {
    ;[upstream, own] = await Promise.all([startBatchUpstream(), startFileUpstream()])
    const { port } = new URL(own.url)
    app = await startApp({
      clock,
      env: { BATCH_POLL_MS: '50', BATCH_FILE_MAX_BYTES: '2500000', ...billingOn, ...batchKeys, OUTBOUND_ALLOW: `acme.cloud.example:${port}` },
      operatorFile: () => withPlace(batchFile(upstream.url, own.url), port),
      lookup: (_hostname, options, callback) => (options.all === true ? callback(null, [{ address: '127.0.0.1', family: 4 }]) : callback(null, '127.0.0.1', 4)),
    })
    await credit(app.orgId)
    openai = clientOf(app.key)
  })
  beforeEach(() => window(7))
  afterAll(async () => {
    await app?.stop()
    await Promise.all([upstream?.close(), own?.close()])
  })

  let grants = 0
  const credit = (orgId: number, inr = 100) =>
    app.gateway.app.operator.credits.give({ orgId, reason: inr > 0 ? 'grant' : 'correction', amountUinr: uinrFromInr(inr), ref: `grant ${++grants}` })
  const clientOf = (apiKey: string) => new OpenAI({ baseURL: `${app.baseUrl}/v1`, apiKey, maxRetries: 0 })
  const window = async (days: number, userId = app.userId, orgId = app.orgId) => {
    const set = await app.call('PUT', '/me/org/data-retention', { days }, { cookie: await app.signIn(userId, orgId) })
    expect(set.status).toBe(200)
  }
  const saveKey = async ({ userId, orgId }: { readonly userId: number; readonly orgId: number }, key: string) => {
    const saved = await app.call('PUT', '/me/byok/second', { key, always_use: true }, { cookie: await app.signIn(userId, orgId) })
    expect(saved.status, saved.text).toBe(200)
  }
  /** A line as the provider gets it. */
  const sentLine = (index: number) => {
    const [line] = linesOf(index + 1, { model: 'gpt-batch-upstream' }).slice(-1)
    return line
  }
  const upload = (client = openai, lines: readonly object[] = linesOf(1, second)) =>
    client.files.create({ file: new File([jsonl(lines)], 'lines.jsonl'), purpose: 'batch' })

  test('CLOUD-09 closing the window ends all files, here at that moment and at the provider soon after, and begins no batch of an old file', async () => {
    const file = await upload()
    expect(own.files.size).toBe(1)
    await window(0)
    await expect(openai.files.retrieve(file.id)).rejects.toMatchObject({ status: 404 })
    await expect(openai.files.content(file.id)).rejects.toMatchObject({ status: 404 })
    expect((await openai.files.list()).data).toEqual([])
    await until(() => own.files.size === 0)
    await window(7)
    const late = await upload()
    own.revoked.add('Bearer second-secret')
    await window(0)
    // Another process may write a row after the window was closed.
    await app.db.exec(revive, late.id)
    await expect(openai.batches.create({ input_file_id: late.id, endpoint: '/v1/chat/completions', completion_window: '24h' })).rejects.toMatchObject({
      status: 403,
      code: 'model_gated',
    })
    own.revoked.clear()
  })

  test('CLOUD-09 a shorter window ends files earlier, and nobody reads a file whose time has ended', async () => {
    const file = await upload()
    expect(file.expires_at).toBe(file.created_at + 7 * 86_400)
    await window(2)
    expect((await openai.files.retrieve(file.id)).expires_at).toBe(file.created_at + 2 * 86_400)
    await window(7)
    clock.advance(3 * dayMs)
    await expect(openai.files.retrieve(file.id)).rejects.toMatchObject({ status: 404 })
    expect((await openai.files.list()).data).toEqual([])
    await app.gateway.app.jobs.runOnce('batches.sweep')
    expect(own.files.size).toBe(0)
  })

  test('CLOUD-09 without a window nobody reads the results of a batch of messages', async () => {
    const anthropic = new Anthropic({ baseURL: app.baseUrl, apiKey: app.key, maxRetries: 0 })
    const params = { model: 'claude-batch', max_tokens: 30, messages: [{ role: 'user' as const, content: 'Hello' }] }
    const batch = await anthropic.messages.batches.create({ requests: [{ custom_id: 'a', params }] })
    upstream.finish()
    await until(async () => (await anthropic.messages.batches.retrieve(batch.id)).processing_status === 'ended')
    await window(0)
    const refused = await app.call('GET', `/v1/messages/batches/${batch.id}/results`)
    expect([refused.status, refused.text]).toEqual([403, expect.stringContaining('retention window')])
    await window(7)
    expect((await app.call('GET', `/v1/messages/batches/${batch.id}/results`)).status).toBe(200)
  })

  test('an upload tells the provider when the file ends', async () => {
    const file = await upload()
    const form = [...own.files.values()].at(-1)
    expect(Object.fromEntries(form ?? [])).toEqual({
      purpose: 'batch',
      'expires_after[anchor]': 'created_at',
      'expires_after[seconds]': String(7 * 86_400),
      file: `${JSON.stringify(sentLine(0))}\n`,
    })
    expect(file.bytes).toBe(form?.get('file')?.length)
  })

  test('a caller that leaves after the last byte leaves no file at the provider of which Brigade does not know', async () => {
    const before = own.files.size
    const left = new AbortController()
    own.onUpload = async () => {
      left.abort()
      // The gateway, in this process, notices that the caller is gone while the provider still works.
      for (let turn = 0; turn < 5; turn++) await openai.files.list()
    }
    const sent = openai.files.create({ file: new File([jsonl(linesOf(1, second))], 'lines.jsonl'), purpose: 'batch' }, { signal: left.signal })
    await expect(sent).rejects.toThrow()
    own.onUpload = () => {}
    await until(() => own.files.size === before + 1)
    await until(async () => (await openai.files.list({ limit: 100 })).data.length === before + 1)
  })

  test('a file whose row cannot be written is deleted at the provider', async () => {
    const before = own.files.size
    await app.db.exec(refuseRows)
    await expect(upload()).rejects.toMatchObject({ status: 500 })
    await app.db.exec(takeRows)
    expect(own.files.size).toBe(before)
  })

  test('an organisation without a balance stores nothing in the account of the platform, and with an own key it does', async () => {
    const poor = await app.otherOrg('Poor Files')
    await window(7, poor.userId, poor.orgId)
    // A key is not a trial key any more after the first credit.
    await credit(poor.orgId)
    await credit(poor.orgId, -100)
    const before = own.files.size
    await expect(upload(clientOf(poor.key))).rejects.toMatchObject({ status: 402, code: 'insufficient_credits' })
    expect(own.files.size).toBe(before)
    await saveKey(poor, 'own-key-of-poor')
    await upload(clientOf(poor.key))
    expect(own.files.size).toBe(before + 1)
  })

  test('files that one organisation cannot delete delay no file of another, and are tried again later and less often', async () => {
    const stuck = await app.otherOrg('Stuck')
    await window(7, stuck.userId, stuck.orgId)
    await saveKey(stuck, 'own-key-of-stuck')
    const { id } = await upload(clientOf(stuck.key))
    // All of them end before the file of the other organisation.
    await app.db.exec(multiply, id, 600)
    await window(2, stuck.userId, stuck.orgId)
    await upload()
    own.revoked.add('Bearer own-key-of-stuck')
    clock.advance(7 * dayMs + 1000)
    const sweep = async (): Promise<number> => {
      own.deletes.length = 0
      await app.gateway.app.jobs.runOnce('batches.sweep')
      return own.deletes.filter(({ credential }) => credential === 'Bearer own-key-of-stuck').length
    }
    const asked = await sweep()
    expect((await app.db.one(filesOf, app.orgId)).count).toBe(0)
    expect(asked).toBeGreaterThan(0)
    expect(asked).toBeLessThan(20)
    clock.advance(3600_000)
    expect(await sweep()).toBe(0)
    own.revoked.clear()
    clock.advance(3 * dayMs)
    expect(await sweep()).toBe(601)
    expect((await app.db.one(filesOf, stuck.orgId)).count).toBe(0)
  })

  test('a provider at the place of an organisation takes no batch, because later requests would go to the address of the operator', async () => {
    const cookie = await app.signIn()
    const saved = await app.call('PUT', '/me/byok/placed', { key: 'own-key-of-place', values: { resource: 'acme' }, always_use: true }, { cookie })
    expect(saved.status, saved.text).toBe(200)
    const before = own.files.size
    await expect(upload(openai, linesOf(1, { model: 'placed-batch' }))).rejects.toMatchObject({ code: 'unsupported_operation' })
    expect(own.files.size).toBe(before)
  })

  test('a line with many values is checked in a turn of its organisation, and line breaks inside of it become spaces', async () => {
    const tools = [{ type: 'function', function: { name: 'f', parameters: { enum: Array.from({ length: 12_000 }, (_, index) => index) } } }]
    const lines = linesOf(8, { ...second, tools })
    pauses = 0
    await upload(openai, lines)
    expect(pauses).toBeGreaterThanOrEqual(lines.length)
    pauses = 0
    await upload(openai, linesOf(8, second))
    expect(pauses).toBeLessThan(8)
    const broken = JSON.stringify(linesOf(1, second)[0]).replaceAll(',"', ',\r"')
    const file = await openai.files.create({ file: new File([broken], 'lines.jsonl'), purpose: 'batch' })
    const sent = [...own.files.values()].at(-1)?.get('file') ?? ''
    expect(sent).not.toContain('\r')
    expect(JSON.parse(sent)).toEqual(sentLine(0))
    expect(file.bytes).toBe(sent.length)
  })

  test.for<[string, () => string | Buffer, number, RegExp]>([
    ['is too large', () => formWith(`${jsonl(linesOf(8, { ...second, user: 'x'.repeat(500_000) }))}\n`), 413, /BATCH_FILE_MAX_BYTES/],
    ['ends before its end', () => formWith(jsonl(linesOf(1, second))).slice(0, -20), 400, /not well formed/],
    ['breaks off before its first line ends', () => formWith(jsonl(linesOf(1, second))).slice(0, 200), 400, /not well formed/],
    ['has a part without an end', () => `${formWith(jsonl(linesOf(1, second))).slice(0, -6)}\r\nbroken`, 400, /not well formed/],
    ['has a second file', () => formWith(jsonl(linesOf(1, second))).replace('name="purpose"', 'name="purpose"; filename="x"'), 400, /one file/],
    [
      'has much beside its file',
      () => formWith(jsonl(linesOf(1, second))).replace('\r\nbatch\r\n', `\r\n${'y'.repeat(1_500_000)}\r\n`),
      400,
      /beside its file/,
    ],
  ])('an upload that %s gets an error that says so, and the provider has no file', async ([, form, status, message]) => {
    const before = own.files.size
    const refused = await fetch(`${app.baseUrl}/v1/files`, {
      method: 'POST',
      headers: { authorization: `Bearer ${app.key}`, 'content-type': 'multipart/form-data; boundary=b0' },
      body: form(),
    })
    const text = await refused.text()
    expect([refused.status, text], text).toEqual([status, expect.stringMatching(message)])
    expect(own.files.size).toBe(before)
  })
})

/** Adds a provider whose address each organisation may fill with a value of its own. */
function withPlace({ providers, models }: ReturnType<typeof batchFile>, port: string): object {
  const route = { provider: 'placed', upstream_model: 'placed', input_inr_per_mtok: 10, output_inr_per_mtok: 40, source: 'test', as_of: '2026-01-01' }
  const placed = { id: 'placed', base_url: `http://{resource}.cloud.example:${port}/v1`, residency: 'global', auth: 'bearer', batches: true }
  return { providers: [...providers, placed], models: [...models, { id: 'placed-batch', kind: 'chat', context_length: 100_000, routes: [route] }] }
}

/** Returns a form with a file and, after it, the purpose. */
const formWith = (file: string): string =>
  `--b0\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n${file}\r\n--b0\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--b0--\r\n`
