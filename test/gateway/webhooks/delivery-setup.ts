/** Delivery workers on a database, without a whole gateway. The test moves the clock and decides how host names resolve. */
import { randomBytes } from 'node:crypto'
import type { LookupFunction } from 'node:net'
import { AuditTrail } from '../../../src/gateway/audit/audit.ts'
import { Mail } from '../../../src/gateway/mail/mail.ts'
import { Outcomes } from '../../../src/gateway/webhooks/delivery/outcomes.ts'
import { retrySchedule } from '../../../src/gateway/webhooks/delivery/schedule.ts'
import { DeliveryWorker } from '../../../src/gateway/webhooks/delivery/worker.ts'
import { emit, eventId } from '../../../src/gateway/webhooks/events/events.ts'
import { sealWebhookSecret } from '../../../src/gateway/webhooks/webhook-secret.ts'
import { type Db, statement, type Tx } from '../../../src/platform/db/db.ts'
import { makeLog } from '../../../src/platform/observe/log.ts'
import { createOutbound } from '../../../src/platform/outbound/outbound.ts'
import { makeSealer } from '../../../src/platform/security/secrets.ts'
import { systemIds } from '../../../src/platform/values/ids.ts'
import { type MovableClock, movableClock } from '../../harness/clock.ts'
import { type TestDatabase, testDatabase } from '../../harness/database.ts'
import { until } from '../../harness/until.ts'

const insertOrg = statement<[name: string], { id: number }>(
  'test.webhook_org',
  `with person as (insert into users (email, name, created_at) values ('owner-' || gen_random_uuid() || '@people.test', 'Owner', now()) returning id),
        org as (insert into orgs (name, created_at) values ($1::text, now()) returning id),
        member as (insert into org_members (org_id, user_id, role, created_at) select org.id, person.id, 'owner', now() from org, person returning org_id)
   select org_id as "id" from member`,
)
const insertEndpoint = statement<[orgId: number, url: string], { id: number }>(
  'test.webhook_endpoint',
  `insert into webhook_endpoints (org_id, url, subscribe_all, secret_sealed, created_at) values ($1::int, $2::text, true, '', now()) returning id`,
)
const setSecret = statement<[id: number, orgId: number, sealed: string]>(
  'test.webhook_secret',
  `update webhook_endpoints set secret_sealed = $3::text where id = $1::int and org_id = $2::int`,
)

export interface DeliveryState {
  readonly id: string
  readonly endpointId: number
  readonly eventId: string
  readonly eventSeq: bigint
  readonly status: string
  readonly attempts: number
  readonly code: number | null
  readonly error: string | null
  readonly dueAt: Date | null
  readonly claimedUntil: Date | null
  readonly settledAt: Date | null
}
const deliveryStates = statement<[endpointId: number], DeliveryState>(
  'test.webhook_delivery_states',
  `select id, endpoint_id as "endpointId", event_id as "eventId", event_seq as "eventSeq", status, attempts, code, error, due_at as "dueAt",
          claimed_until as "claimedUntil", settled_at as "settledAt"
   from webhook_deliveries where endpoint_id = $1::int order by event_seq`,
)

export interface EndpointState {
  readonly enabled: boolean
  readonly reason: string | null
  readonly failures: number
  readonly pausedUntil: Date | null
}
const endpointState = statement<[id: number], EndpointState>(
  'test.webhook_endpoint_state',
  `select enabled, disabled_reason as "reason", failures, paused_until as "pausedUntil" from webhook_endpoints where id = $1::int`,
)

const openCount = statement<[], { open: number }>('test.webhook_open_count', `select count(*)::int as "open" from webhook_deliveries where due_at is not null`)

export interface WorkerOptions {
  readonly db?: Db
  readonly clock?: MovableClock
  readonly timeoutMs?: number
  readonly concurrency?: number
  readonly failuresMax?: number
  readonly places?: number
  readonly retryS?: string
  /** The host:port pairs to which the worker may connect. By default, the receivers of all endpoints. */
  readonly allow?: readonly string[]
  readonly lookup?: LookupFunction
}

export interface TestEndpoint {
  readonly id: number
  readonly orgId: number
  readonly secret: string
  deliveries(): Promise<DeliveryState[]>
  state(): Promise<EndpointState>
}

export interface DeliverySetup {
  readonly database: TestDatabase
  readonly db: Db
  readonly clock: MovableClock
  readonly logLines: string[]
  newOrg(): Promise<number>
  /** Makes an endpoint that subscribes to all events. Without `orgId`, it gets an organisation of its own. */
  endpoint(url: string, orgId?: number): Promise<TestEndpoint>
  /** Emits `count` events of an organisation, each in its own transaction. Returns their ids. */
  emit(orgId: number, count?: number): Promise<string[]>
  /** Emits `count` events in one transaction. */
  emitMany(orgId: number, count: number): Promise<void>
  /** Returns the number of deliveries that are still to be sent. */
  openCount(): Promise<number>
  /** Starts a worker like a process does. The returned function or `stopAll`, at the end of the test, stops it. */
  worker(options?: WorkerOptions): () => Promise<void>
  stopAll(): Promise<void>
  /** Waits until no delivery of the endpoint is to be sent. */
  settled(endpoint: TestEndpoint): Promise<DeliveryState[]>
}

export async function startDelivery(): Promise<DeliverySetup> {
  const database = await testDatabase()
  const { db } = database
  const clock = movableClock()
  const logLines: string[] = []
  const log = makeLog('info', { write: line => logLines.push(line) })
  const sealer = makeSealer(randomBytes(32))
  const allowed = new Set<string>()
  const stops: (() => Promise<void>)[] = []
  const deliveries = (id: number): Promise<DeliveryState[]> => db.many(deliveryStates, id)
  const emitIn = async (tx: Tx, orgId: number, made: number): Promise<string> => {
    const event = { id: eventId(systemIds, clock.nowMs()), orgId, type: 'key.revoked', atMs: clock.nowMs() } as const
    await emit(tx, { ...event, data: { key_id: made, prefix: 'br-abc', tier: 'standard', scope: 'full' } })
    return event.id
  }
  const newOrg = async (): Promise<number> => (await db.one(insertOrg, 'Receivers & Co')).id
  return {
    database,
    db,
    clock,
    logLines,
    newOrg,
    async endpoint(url, given) {
      const orgId = given ?? (await newOrg())
      const { id } = await db.one(insertEndpoint, orgId, url)
      const secret = systemIds.secret('whsec_', 32)
      await db.exec(setSecret, id, orgId, sealWebhookSecret(sealer, id, secret))
      allowed.add(new URL(url).host)
      return { id, orgId, secret, deliveries: () => deliveries(id), state: () => db.one(endpointState, id) }
    },
    async emit(orgId, count = 1) {
      const ids: string[] = []
      for (let made = 0; made < count; made++) ids.push(await db.tx(tx => emitIn(tx, orgId, made)))
      return ids
    },
    emitMany: (orgId, count) =>
      db.tx(async tx => {
        for (let made = 0; made < count; made++) await emitIn(tx, orgId, made)
      }),
    openCount: async () => (await db.one(openCount)).open,
    worker(options = {}) {
      const { db: own = db, clock: time = clock, timeoutMs = 2_000, concurrency = 4, failuresMax = 20, retryS = '5,300,1800', lookup } = options
      const timeouts = { connectTimeoutMs: timeoutMs, firstByteTimeoutMs: 60_000, streamIdleTimeoutMs: 60_000 }
      const outbound = createOutbound({ ...timeouts, allow: options.allow ?? [...allowed], ...(lookup ? { lookup } : {}) })
      const schedule = retrySchedule(retryS.split(','))
      const parts = { db: own, clock: time, ids: systemIds, log, schedule }
      const audit = new AuditTrail({ db: own, clock: time, keepDays: 1 })
      const act = { actor: 'system', act: 'disableWebhook', sourceIp: null, requestId: null } as const
      const outcomes = new Outcomes({
        ...parts,
        mail: new Mail({ db: own, clock: time }),
        failuresMax,
        baseUrl: () => 'https://gateway.test',
        onDisabled: (tx, orgId, endpointId) => audit.recordIn(tx, { ...act, orgId, target: `webhook=${endpointId}` }, 'ok'),
      })
      const stopWorker = new DeliveryWorker({
        ...parts,
        outbound,
        sealer,
        outcomes,
        timeoutMs,
        pollMs: 20,
        stopGraceMs: 300,
        concurrency,
        places: options.places,
        userAgent: 'Brigade-Webhooks/test',
      }).start()
      const stop = async (): Promise<void> => {
        await stopWorker()
        await outbound.close()
      }
      stops.push(stop)
      return stop
    },
    async stopAll() {
      await Promise.all(stops.splice(0).map(stop => stop()))
    },
    async settled({ id }) {
      await until(async () => (await deliveries(id)).every(({ dueAt }) => dueAt === null), `everything for endpoint ${id} settled`, 20_000)
      return deliveries(id)
    },
  }
}
