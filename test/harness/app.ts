import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { LookupFunction } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RunningGateway, startGateway } from '../../src/composition/serve.ts'
import { checkBatchInvariants } from '../../src/gateway/batches/create-batches.ts'
import { checkBillingInvariants } from '../../src/gateway/billing/invariants.ts'
import type { Scope } from '../../src/gateway/limits/engine/counters/counter-state.ts'
import { checkInvariants } from '../../src/gateway/limits/invariants.ts'
import type { JournalDisk } from '../../src/gateway/limits/journal/journal-disk.ts'
import type { Clock } from '../../src/platform/clock.ts'
import { loadConfig } from '../../src/platform/config.ts'
import { type Db, statement } from '../../src/platform/db/db.ts'
import { makeLog } from '../../src/platform/observe/log.ts'
import { uinrFromInr } from '../../src/platform/values/money.ts'
import { testDatabase } from './database.ts'
import { type DialectUpstreams, dialectModels, dialectProviders, startDialectUpstreams } from './dialect-upstreams.ts'
import { dumpTables } from './dump.ts'
import { checkAgainstRow } from './row-contract.ts'
import { startUpstream, type UpstreamServer } from './upstream-server.ts'

export interface TestOptions {
  /** More settings, as environment variables. */
  readonly env?: Readonly<Record<string, string>>
  readonly clock?: Clock
  /** Resolves the hosts of user-given URLs. */
  readonly lookup?: LookupFunction
  /** The disk of the usage journal. The default is the disk of this machine. */
  readonly journalDisk?: JournalDisk
  /** True: usage is flushed in a thread of its own, from dist, as in a real process. Default: by this process, from the source. */
  readonly flushThread?: boolean
  /** Adds the providers and models of dialect-upstreams.ts, one of every dialect that the build speaks, and starts their servers (`app.others`). */
  readonly dialects?: boolean
  /** Returns the operator's file to use instead of the default one below. */
  readonly operatorFile?: (urls: { alpha: string; beta: string; indus: string }) => object
}

export interface TestApp {
  readonly baseUrl: string
  readonly gateway: RunningGateway
  readonly db: Db
  /** Three real HTTP upstreams: two global, one in India. */
  readonly alpha: UpstreamServer
  readonly beta: UpstreamServer
  readonly indus: UpstreamServer
  /** Servers of the other dialects. Throws without `dialects: true`. */
  readonly others: DialectUpstreams
  readonly orgId: number
  readonly userId: number
  /** A full key of the owner of the organisation, without limits. */
  readonly key: string
  readonly keyId: number
  /** Log lines so far. */
  readonly logLines: string[]
  readonly dataDir: string
  /** Calls `fetch` with a credential. The default is `key`, and null means none. A body that is not a string is sent as JSON. */
  call(
    method: string,
    path: string,
    body?: unknown,
    options?: { token?: string | null; cookie?: string; headers?: Record<string, string>; signal?: AbortSignal },
  ): Promise<TestReply>
  /** Returns the cookie of a signed-in person. The default is the owner of `orgId`. Pass it to `call` as `cookie`, which then sends no key. */
  signIn(userId?: number, orgId?: number): Promise<string>
  /** Makes a new member of an organisation (default `orgId`) with a session cookie. */
  newMember(role: 'member' | 'admin' | 'owner', options?: { orgId?: number; capabilities?: readonly string[] }): Promise<TestMember>
  /** Makes another organisation with a key of its owner. */
  otherOrg(name: string): Promise<{ orgId: number; userId: number; key: string; keyId: number }>
  newKey(options?: {
    scope?: 'full' | 'inference'
    withUser?: boolean
    rpm?: number | null
    daily?: number | null
    name?: string
    budgetInr?: number
  }): Promise<{ key: string; keyId: number }>
  /** Makes a new agent with a token. */
  newAgent(name: string): Promise<{ id: number; token: string }>
  setBudget(scope: Scope, id: number, inr: number | null): Promise<void>
  /** Returns every row of every table as text. */
  dump(): Promise<string>
  /** Stops everything. Checks the money invariants first. */
  stop(): Promise<void>
}

export interface TestMember {
  readonly userId: number
  readonly email: string
  readonly cookie: string
}

export interface TestReply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: test assertions read arbitrary JSON.
  readonly json: any
}

const addPerson = statement<[email: string], { id: number }>(
  'test.harness_add_person',
  `insert into users (email, name, created_at) values ($1::text, split_part($1::text, '@', 1), now()) returning id`,
)
const addMember = statement<[orgId: number, userId: number, role: string, capabilities: readonly string[]]>(
  'test.harness_add_member',
  `insert into org_members (org_id, user_id, role, capabilities, created_at) values ($1::int, $2::int, $3::text, $4::text[], now())`,
)

/** `test-model` is served by alpha (₹10/₹40), beta (₹20/₹80) and indus (₹30/₹120, India); the other models by fewer. */
export function defaultOperatorFile(urls: { alpha: string; beta: string; indus: string }): { providers: object[]; models: object[] } {
  const provider = (id: string, base_url: string, residency: string, more: object = {}) => ({ id, base_url, residency, auth: 'bearer', ...more })
  const route = (id: string, input: number, output: number) => ({
    provider: id,
    upstream_model: `${id}-upstream`,
    input_inr_per_mtok: input,
    output_inr_per_mtok: output,
    source: 'test',
    as_of: '2026-01-01',
  })
  return {
    providers: [
      provider('alpha', urls.alpha, 'global'),
      provider('beta', urls.beta, 'global'),
      provider('indus', urls.indus, 'india'),
      provider('murky', urls.beta, 'unknown'),
      provider('mute', urls.beta, 'global', { quirks: ['no-stream-usage'] }),
    ],
    models: [
      {
        id: 'test-model',
        kind: 'chat',
        context_length: 100_000,
        tools: true,
        routes: [route('alpha', 10, 40), route('beta', 20, 80), route('indus', 30, 120)],
      },
      { id: 'alpha-only', kind: 'chat', context_length: 100_000, tools: true, routes: [route('alpha', 10, 40)] },
      { id: 'same-id', kind: 'chat', context_length: 100_000, tools: true, routes: [{ ...route('alpha', 10, 40), upstream_model: 'same-id' }] },
      { id: 'global-only', kind: 'chat', context_length: 100_000, routes: [route('alpha', 10, 40), route('murky', 5, 5)] },
      { id: 'mute-model', kind: 'chat', context_length: 100_000, routes: [route('mute', 10, 40)] },
      { id: 'byok-model', kind: 'chat', context_length: 100_000, routes: [{ ...route('alpha', 10, 40), byok_only: true }] },
      { id: 'test-embed', kind: 'embedding', context_length: 8192, dimensions: 1024, routes: [route('alpha', 4, 0), route('indus', 6, 0)] },
    ],
  }
}

/** Starts a whole gateway in this process on the test database, with three real upstreams. */
export async function startApp(options: TestOptions = {}): Promise<TestApp> {
  const [database, alpha, beta, indus] = await Promise.all([testDatabase(), startUpstream(), startUpstream(), startUpstream()])
  const dataDir = mkdtempSync(join(tmpdir(), 'brigade-test-'))
  const urls = { alpha: alpha.url, beta: beta.url, indus: indus.url }
  const configFile = join(dataDir, 'brigade.config.json')
  const others = options.dialects ? await startDialectUpstreams() : null
  const file = (options.operatorFile ?? defaultOperatorFile)(urls) as { providers?: object[]; models?: object[] }
  const withOthers =
    others === null
      ? file
      : {
          ...file,
          providers: [...(file.providers ?? []), ...dialectProviders(others, urls.alpha)],
          models: [...(file.models ?? []), ...dialectModels()],
        }
  writeFileSync(configFile, JSON.stringify(withOthers))
  const logLines: string[] = []
  const keys = Object.fromEntries(
    ['ALPHA', 'BETA', 'INDUS', 'MURKY', 'MUTE', 'NEWER', 'CLAUDE', 'GEM', 'RESP'].map(name => [`${name}_API_KEY`, `${name.toLowerCase()}-platform-secret`]),
  )
  const config = loadConfig({
    PORT: '0',
    DATA_DIR: dataDir,
    CONFIG_FILE: configFile,
    SANDBOX: 'off',
    LOCAL_SERVERS: 'off',
    CIRCUIT_OPEN_MS: '1000',
    // No test may call the internet.
    PRICE_FEED_URL: 'off',
    ...keys,
    ...options.env,
  })
  const gateway = await startGateway(config, {
    ...(options.clock ? { clock: options.clock } : {}),
    ...(options.lookup ? { lookup: options.lookup } : {}),
    ...(options.journalDisk ? { journalDisk: options.journalDisk } : {}),
    flushesHere: options.flushThread !== true && process.env['TEST_FLUSH_THREAD'] !== 'on',
    log: makeLog('info', { write: line => logLines.push(line) }),
    foundation: { dataDir, masterKey: randomBytes(32), db: database.db },
    makesFirstOrg: false,
  })
  const { app, baseUrl } = gateway
  const makeOrg = async (name: string) => {
    const { orgId, userId } = await app.orgs.createOrg({ name, ownerEmail: `owner@${name.toLowerCase().replaceAll(' ', '-')}.test` })
    const created = await app.keys.create({ orgId, userId, workspaceId: null, name: 'owner key', scope: 'full', rpmLimit: null, dailyLimit: null })
    return { orgId, userId, key: created.key, keyId: created.id }
  }
  const home = await makeOrg('Test Org')
  let named = 0
  const test: TestApp = {
    baseUrl,
    gateway,
    db: database.db,
    alpha,
    beta,
    indus,
    get others() {
      if (others === null) throw new Error('startApp({ dialects: true }) starts the upstreams of the other dialects')
      return others
    },
    ...home,
    logLines,
    dataDir,
    async call(method, path, body, { cookie, token = cookie === undefined ? home.key : null, headers = {}, signal } = {}) {
      const response = await fetch(baseUrl + path, {
        method,
        redirect: 'manual',
        headers: {
          ...(cookie === undefined ? {} : { cookie }),
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
          ...(body === undefined ? {} : { 'content-type': typeof body === 'string' ? 'text/plain' : 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
        ...(signal ? { signal } : {}),
      })
      const reply = await replyOf(response)
      checkAgainstRow(method, path, reply.status, reply.json)
      return reply
    },
    async signIn(userId = home.userId, orgId = home.orgId) {
      return (await app.sessions.create(userId, orgId)).cookie
    },
    async newMember(role, { orgId = home.orgId, capabilities = [] } = {}) {
      named++
      const email = `person-${named}@people.test`
      const { id: userId } = await database.db.one(addPerson, email)
      await database.db.exec(addMember, orgId, userId, role, capabilities)
      return { userId, email, cookie: await test.signIn(userId, orgId) }
    },
    otherOrg: makeOrg,
    async newKey({ scope = 'full', withUser = true, rpm = null, daily = null, name, budgetInr } = {}) {
      named++
      const created = await app.keys.create({
        orgId: home.orgId,
        userId: withUser ? home.userId : null,
        workspaceId: null,
        name: name ?? `key ${named}`,
        scope,
        rpmLimit: rpm,
        dailyLimit: daily,
      })
      if (budgetInr !== undefined) await test.setBudget('key', created.id, budgetInr)
      return { key: created.key, keyId: created.id }
    },
    async newAgent(name) {
      const made = await test.call('POST', '/v1/me/agents', { name })
      const token = await test.call('POST', `/v1/me/agents/${made.json.id}/token`, {})
      return { id: made.json.id, token: token.json.access_token }
    },
    setBudget: (scope, id, inr) => app.limits.budgets.set(home.orgId, scope, String(id), inr === null ? null : uinrFromInr(inr)),
    dump: () => dumpTables(database.db),
    async stop() {
      await app.limits.flushNow()
      const { db } = database
      const violations = [...(await checkInvariants(db)), ...(await checkBillingInvariants(db)), ...(await checkBatchInvariants(db))]
      await gateway.stop()
      await Promise.all([alpha.close(), beta.close(), indus.close(), others?.close(), database.dispose()])
      rmSync(dataDir, { recursive: true, force: true })
      if (violations.length > 0) throw new Error(`money invariants broken:\n${violations.join('\n')}`)
    },
  }
  return test
}

async function replyOf(response: Response): Promise<TestReply> {
  // A stream of hints has no end.
  if (response.ok && response.url.endsWith('/me/events')) {
    await response.body?.cancel()
    return { status: response.status, headers: response.headers, text: '', json: null }
  }
  const text = await response.text()
  let json: unknown = null
  try {
    json = JSON.parse(text)
  } catch {
    // The body is not JSON. The test can read the text.
  }
  return { status: response.status, headers: response.headers, text, json }
}

/** Waits until `isSo` returns true, for at most `deadlineMs`. It checks every 20 ms. */
export async function until(isSo: () => boolean | Promise<boolean>, deadlineMs = 10_000): Promise<void> {
  const end = Date.now() + deadlineMs
  while (!(await isSo())) {
    if (Date.now() > end) throw new Error('the condition did not come about in time')
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}
