import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Sessions } from '../../src/gateway/access/sessions.ts'
import { createKeys } from '../../src/gateway/keys/keys.ts'
import { Budgets } from '../../src/gateway/limits/budgets/budgets.ts'
import { CounterTable } from '../../src/gateway/limits/engine/counters/counter-state.ts'
import { checkInvariants } from '../../src/gateway/limits/invariants.ts'
import { createOrgs } from '../../src/gateway/orgs/orgs.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { type Db, statement } from '../../src/platform/db/db.ts'
import { ControlLog } from '../../src/platform/db/db-control-log.ts'
import { silentLog } from '../../src/platform/observe/log.ts'
import { systemIds } from '../../src/platform/values/ids.ts'
import { uinrFromInr } from '../../src/platform/values/money.ts'
import { type TestDatabase, testDatabase } from './database.ts'
import { fixedCostConfig, type GatewayProcess, startProcess } from './process.ts'
import { type RecordedRequest, startUpstream, type UpstreamScript, type UpstreamServer } from './upstream-server.ts'

/** The cost of one output token of `fixed-model`, in micro-rupees. */
export const tokenUinr = 100n

/** The fields of a usage row that these tests read. */
export interface UsageRow {
  readonly keyId: number
  readonly label: string | null
  readonly agentId: number | null
  readonly outcome: string
  readonly estimated: boolean
  readonly completionTokens: bigint
  readonly valueUinr: bigint
}

const usageRows = statement<[orgId: number], UsageRow>(
  'test.usage_rows',
  `select key_id as "keyId", agent_label as "label", agent_id as "agentId", outcome as "outcome", estimated as "estimated", completion_tokens as "completionTokens", value_uinr as "valueUinr"
   from usage_events where org_id = $1::int order by at, id`,
)
const leases = statement<[scope: string, scopeId: string], { processId: bigint; amount: bigint }>(
  'test.leases',
  `select l.process_id as "processId", l.amount as "amount" from leases l join counters c on c.id = l.counter_id
   where c.scope = $1::text and c.scope_id = $2::text and l.amount > 0 order by l.process_id`,
)

/** A whole reply. */
export interface FleetReply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: test assertions read arbitrary JSON.
  readonly json: any
}

/** Several gateway processes on one PostgreSQL database, and the upstream that all of them call. */
export interface Fleet {
  readonly database: TestDatabase
  readonly db: Db
  readonly upstream: UpstreamServer
  readonly orgId: number
  /** A full key of the owner, without limits. */
  readonly key: string
  /** Returns the cookie of a signed-in person. The default is the owner. */
  signIn(userId?: number): Promise<string>
  /** Starts another process. Without `dataDir` it gets a new folder. `program` runs instead of dist/main.js. */
  start(env?: Readonly<Record<string, string>>, dataDir?: string, program?: string): Promise<GatewayProcess>
  newFolder(): string
  /** Runs `brigade` with these arguments as an operator would, with the settings of the fleet and a separate data folder. */
  command(...words: string[]): Promise<{ readonly code: number | null; readonly out: string; readonly err: string }>
  newKey(limits: { rpm?: number; daily?: number; budgetInr?: number }): Promise<{ id: number; key: string }>
  /** Makes a new agent with a budget and a token, over HTTP through the first living process. */
  newAgent(name: string, budgetInr: number | null): Promise<{ id: number; token: string }>
  usage(): Promise<readonly UsageRow[]>
  /** Returns the leases on the counters of a scope: process and amount. */
  leasesOf(scope: 'agent' | 'key', id: number): Promise<readonly { processId: bigint; amount: bigint }[]>
  /** Returns one sentence for each broken money invariant. */
  violations(): Promise<readonly string[]>
  /** Kills every process and drops the database. */
  stop(): Promise<void>
}

/** Settings with short intervals, so that regular jobs run within a test. */
const shortTimes = { BEAT_MS: '200', JANITOR_MS: '300', CONTROL_POLL_MS: '200', JOURNAL_FLUSH_MS: '50' }

/** The answer of a fleet's upstream: as many output tokens as the request allows. */
export function fleetAnswer(request: RecordedRequest): UpstreamScript {
  return { usage: { prompt_tokens: 10, completion_tokens: Number(request.json?.['max_tokens'] ?? 10), total_tokens: 0 } }
}

/**
 * Makes the database, an organisation with a key of its owner, and the upstream. Every answer has as many tokens as `max_tokens`. Without `own`, the
 * database is a new one of the server of the run.
 */
export async function startFleet(env: Readonly<Record<string, string>> = {}, own?: TestDatabase): Promise<Fleet> {
  const [database, upstream] = await Promise.all([own ?? testDatabase(), startUpstream()])
  const { db, url } = database
  if (url === null) throw new Error('a fleet needs TEST_DATABASE=postgres')
  upstream.script(fleetAnswer)
  const masterKey = randomBytes(32)
  const settings = {
    DATABASE_URL: url,
    MASTER_KEY: masterKey.toString('base64'),
    CONFIG_FILE: fixedCostConfig(upstream.url),
    BASE_URL: 'http://brigade.test',
    ...shortTimes,
    ...env,
  }
  const controlLog = new ControlLog({ db, clock: systemClock, log: silentLog, pollMs: 1000 })
  const { orgId, userId } = await createOrgs({ db, clock: systemClock, controlLog, cacheTtlMs: 1000 }).createOrg({
    name: 'Fleet',
    ownerEmail: 'owner@fleet.test',
  })
  const keys = createKeys({ db, clock: systemClock, ids: systemIds, controlLog, cacheTtlMs: 1000, defaultRpm: 600 })
  const times = { ttlSeconds: 3600, cacheTtlMs: 1000 }
  const sessions = new Sessions({ db, clock: systemClock, ids: systemIds, controlLog, masterKey, ...times, baseUrl: () => settings.BASE_URL })
  const budgets = new Budgets({ db, ids: systemIds, controlLog, counters: new CounterTable(systemClock), nowMs: () => Date.now(), silentMs: 0 })
  const makeKey = (name: string, limits: { rpm?: number; daily?: number }) =>
    keys.create({ orgId, userId, workspaceId: null, name, scope: 'full', rpmLimit: limits.rpm ?? null, dailyLimit: limits.daily ?? null })
  const { key } = await makeKey('owner', {})
  const started: GatewayProcess[] = []
  const folders: string[] = []
  const newFolder = (): string => {
    const folder = mkdtempSync(join(tmpdir(), 'brigade-fleet-'))
    folders.push(folder)
    return folder
  }
  let made = 0
  return {
    database,
    db,
    upstream,
    orgId,
    key,
    newFolder,
    command: (...words) => runBrigade({ ...settings, DATA_DIR: newFolder(), LOG_LEVEL: 'error' }, words),
    signIn: async (who = userId) => (await sessions.create(who, orgId)).cookie,
    async start(more = {}, dataDir = newFolder(), program) {
      // All processes have the same public address, as behind a load balancer. The test calls each at its own port.
      const member = await onFreePort(async port => ({
        ...(await startProcess({ ...settings, PORT: String(port), ...more }, dataDir, program)),
        baseUrl: `http://127.0.0.1:${port}`,
      }))
      started.push(member)
      return member
    },
    async newKey(limits) {
      made++
      const { id, key: text } = await makeKey(`key ${made}`, limits)
      if (limits.budgetInr !== undefined) await budgets.set(orgId, 'key', String(id), uinrFromInr(limits.budgetInr))
      return { id, key: text }
    },
    async newAgent(name, budgetInr) {
      const through = started.find(process => process.child.exitCode === null && process.child.signalCode === null)
      if (through === undefined) throw new Error('no process runs')
      const agent = await call(through, key, 'POST', '/v1/me/agents', { name })
      const id = Number(agent.json.id)
      if (budgetInr !== null) await call(through, key, 'POST', `/v1/me/agents/${id}/budget`, { monthly_budget_inr: budgetInr })
      const token = await call(through, key, 'POST', `/v1/me/agents/${id}/token`, {})
      return { id, token: String(token.json.access_token) }
    },
    usage: () => db.many(usageRows, orgId),
    leasesOf: (scope, id) => db.many(leases, scope, String(id)),
    violations: () => checkInvariants(db),
    async stop() {
      await Promise.all(started.map(process => process.kill()))
      await Promise.all([upstream.close(), database.dispose()])
      for (const folder of folders) rmSync(folder, { recursive: true, force: true })
    },
  }
}

const brigade = fileURLToPath(new URL('../../dist/cli/brigade.js', import.meta.url))

function runBrigade(env: Readonly<Record<string, string>>, words: readonly string[]): Promise<{ code: number | null; out: string; err: string }> {
  const child = spawn(process.execPath, [brigade, ...words], { env: { PATH: process.env['PATH'] ?? '', ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  const text = { out: '', err: '' }
  child.stdout.on('data', chunk => {
    text.out += String(chunk)
  })
  child.stderr.on('data', chunk => {
    text.err += String(chunk)
  })
  return new Promise(done => child.once('close', code => done({ code, ...text })))
}

/** Starts on a free port. Tries another port when someone took it in the meantime. */
async function onFreePort<T>(start: (port: number) => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await start(await freePort())
    } catch (error) {
      if (tries === 5 || !String(error).includes('is taken, perhaps by another')) throw error
    }
  }
}

function freePort(): Promise<number> {
  return new Promise((done, failed) => {
    const server = createServer()
    server.once('error', failed)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => done(port))
    })
  })
}

/** Makes one request to one process and reads the reply to its end. */
export async function call(
  process: { readonly baseUrl: string },
  token: string,
  method: string,
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<FleetReply> {
  const response = await fetch(process.baseUrl + path, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  let json: unknown = null
  try {
    json = JSON.parse(text)
  } catch {
    // The body is not JSON. The test can read the text.
  }
  return { status: response.status, headers: response.headers, text, json }
}

/** Makes a chat call that costs exactly `tokens` output tokens. */
export function chat(
  process: { readonly baseUrl: string },
  token: string,
  tokens: number,
  body: object = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<FleetReply> {
  return call(
    process,
    token,
    'POST',
    '/v1/chat/completions',
    { model: 'fixed-model', max_tokens: tokens, messages: [{ role: 'user', content: 'Hello' }], ...body },
    headers,
  )
}

/** Counts the statuses and codes of many replies: `{ '200': 10, '429 agent_budget_held': 190 }`. */
export function countReplies(replies: readonly FleetReply[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { status, json } of replies) {
    const name = status === 200 ? '200' : `${status} ${json?.error?.code}`
    counts[name] = (counts[name] ?? 0) + 1
  }
  return counts
}
