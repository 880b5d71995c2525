import { randomBytes } from 'node:crypto'
import { type Agents, createAgents } from '../../src/agents/agents.ts'
import { createKeys, type Keys } from '../../src/gateway/keys/keys.ts'
import { Budgets } from '../../src/gateway/limits/budgets/budgets.ts'
import { CounterTable } from '../../src/gateway/limits/engine/counters/counter-state.ts'
import { createOrgs, type Orgs } from '../../src/gateway/orgs/orgs.ts'
import { type Clock, systemClock } from '../../src/platform/clock.ts'
import type { Db } from '../../src/platform/db/db.ts'
import { ControlLog } from '../../src/platform/db/db-control-log.ts'
import { Inflight } from '../../src/platform/loop/inflight.ts'
import { silentLog } from '../../src/platform/observe/log.ts'
import type { KeyPrincipal } from '../../src/platform/security/principal.ts'
import { makeSealer } from '../../src/platform/security/secrets.ts'
import { systemIds } from '../../src/platform/values/ids.ts'

export const testBaseUrl = 'https://gateway.example'

/** The machine's clock, which a test can move forward. Timers use real time. */
export interface MovableClock extends Clock {
  advance(ms: number): void
}

export function movableClock(): MovableClock {
  let aheadMs = 0
  return {
    ...systemClock,
    nowMs: () => systemClock.nowMs() + aheadMs,
    monotonicMs: () => systemClock.monotonicMs() + aheadMs,
    advance(ms) {
      aheadMs += ms
    },
  }
}

/** The parts of one gateway process that keys and agents need. */
export interface Process {
  readonly db: Db
  readonly clock: MovableClock
  readonly controlLog: ControlLog
  readonly inflight: Inflight
  readonly keys: Keys
  readonly orgs: Orgs
  readonly agents: Agents
  stop(): Promise<void>
}

export interface ProcessOptions {
  readonly pollMs?: number
  readonly masterKey?: Buffer
  readonly baseUrl?: string
  readonly cacheTtlMs?: number
  readonly tokenTtlSeconds?: number
}

const sharedMasterKey = randomBytes(32)

export async function startProcess(db: Db, options: ProcessOptions = {}): Promise<Process> {
  const clock = movableClock()
  const controlLog = new ControlLog({ db, clock, log: silentLog, pollMs: options.pollMs ?? 50 })
  const inflight = new Inflight()
  const budgets = new Budgets({ db, ids: systemIds, controlLog, counters: new CounterTable(clock), nowMs: () => clock.nowMs(), silentMs: 30_000 })
  const cacheTtlMs = options.cacheTtlMs ?? 30_000
  const keys = createKeys({ db, clock, ids: systemIds, controlLog, cacheTtlMs, defaultRpm: 600 })
  const orgs = createOrgs({ db, clock, controlLog, cacheTtlMs })
  const agents = createAgents({
    db,
    clock,
    ids: systemIds,
    log: silentLog,
    controlLog,
    inflight,
    keys,
    sealer: makeSealer(options.masterKey ?? sharedMasterKey),
    baseUrl: () => options.baseUrl ?? testBaseUrl,
    tokenTtlSeconds: options.tokenTtlSeconds ?? 900,
    staleMs: 30_000,
    cacheTtlMs,
    budgets,
    playgroundBudgetInr: 50,
  })
  await controlLog.start()
  await agents.start()
  return {
    db,
    clock,
    controlLog,
    inflight,
    keys,
    orgs,
    agents,
    async stop() {
      agents.stop()
      await controlLog.stop()
    },
  }
}

let counter = 0

/** Creates an organisation with an owner and a full key, and returns them as a principal. */
export async function newCaller(process: Process): Promise<{ principal: KeyPrincipal; key: string; keyId: number; orgId: number; userId: number }> {
  counter++
  const { orgId, userId } = await process.orgs.createOrg({ name: `Org ${counter}`, ownerEmail: `owner-${counter}-${systemIds.secret('', 6)}@example.com` })
  const created = await process.keys.create({ orgId, userId, workspaceId: null, name: 'main', scope: 'full' })
  const principal: KeyPrincipal = {
    kind: 'key',
    orgId,
    userId,
    role: 'owner',
    keyId: created.id,
    keyName: 'main',
    scope: 'full',
    workspaceId: null,
    limits: { rpmLimit: 600, dailyLimit: null },
    policies: [],
    capabilities: [],
  }
  return { principal, key: created.key, keyId: created.id, orgId, userId }
}

/** Resolves when the condition holds. Throws after 10 s. */
export async function until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const deadlineMs = systemClock.monotonicMs() + 10_000
  while (!(await condition())) {
    if (systemClock.monotonicMs() > deadlineMs) throw new Error(`never happened: ${what}`)
    await systemClock.sleep(10)
  }
}

/** Returns what a call throws, synchronously or asynchronously. */
export async function thrownBy(fn: () => unknown): Promise<unknown> {
  try {
    await fn()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}
