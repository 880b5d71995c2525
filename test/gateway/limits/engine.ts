import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { flushThreadOf } from '../../../src/composition/flush-thread/flush-thread-of.ts'
import { capChanged } from '../../../src/gateway/limits/budgets/budgets.ts'
import type { AdmissionRequest } from '../../../src/gateway/limits/engine/admission.ts'
import { createLimits, type LimitsEngine } from '../../../src/gateway/limits/engine/limits.ts'
import type { JournalDisk } from '../../../src/gateway/limits/journal/journal-disk.ts'
import { OrgLimits } from '../../../src/gateway/limits/org-limits.ts'
import { insertUsageEvents } from '../../../src/gateway/usage/events/apply.ts'
import type { UsageEvent } from '../../../src/gateway/usage/events/record.ts'
import { usageEventCodec } from '../../../src/gateway/usage/events/record-bytes.ts'
import { type Clock, systemClock } from '../../../src/platform/clock.ts'
import { loadConfig } from '../../../src/platform/config.ts'
import type { Db } from '../../../src/platform/db/db.ts'
import { ControlLog } from '../../../src/platform/db/db-control-log.ts'
import { type Log, silentLog } from '../../../src/platform/observe/log.ts'
import type { KeyPrincipal } from '../../../src/platform/security/principal.ts'
import { systemIds } from '../../../src/platform/values/ids.ts'

/** A limits engine on a database, as each process has one. */
export interface TestEngine {
  readonly limits: LimitsEngine<UsageEvent>
  readonly db: Db
  readonly dataDir: string
  /** Returns the number of the last news about a changed cap of this organisation that the engine has received. */
  heard(orgId: number): bigint
  stop(): Promise<void>
}

export interface EngineOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly clock?: Clock
  readonly dataDir?: string
  /** The disk of its journal. The default is the disk of this machine. */
  readonly disk?: JournalDisk
  /** True: periods follow the database's clock, as in a real process. By default they follow the given clock. */
  readonly followDatabaseClock?: boolean
  /** True: flushes run in a thread of their own, from dist. Default: TEST_FLUSH_THREAD. */
  readonly flushThread?: boolean
  readonly log?: Log
  /** True: organisations have the limits of the settings. The oldest organisation of the database is exempt, and one that it does not have is not. */
  readonly orgLimits?: boolean
}

export async function startEngine(db: Db, options: EngineOptions = {}): Promise<TestEngine> {
  const clock = options.clock ?? systemClock
  const log = options.log ?? silentLog
  const config = loadConfig({ JOURNAL_FLUSH_MS: '20', BEAT_MS: '100', ...options.env })
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'brigade-limits-'))
  const controlLog = new ControlLog({ db, clock, log: silentLog, pollMs: config.CONTROL_POLL_MS })
  const heard = new Map<string, bigint>()
  controlLog.on(news => {
    const orgId = news.ref.split(':')[0] ?? ''
    if (news.kind === capChanged && news.seq > (heard.get(orgId) ?? 0n)) heard.set(orgId, news.seq)
  })
  const limits = await createLimits<UsageEvent>({
    db,
    config,
    clock,
    dataDir,
    controlLog,
    ids: systemIds,
    log,
    ...((options.flushThread ?? process.env['TEST_FLUSH_THREAD'] === 'on') ? flushThreadOf({ db, clock, log }, () => 'http://brigade.test') : {}),
    appliers: [insertUsageEvents],
    codec: usageEventCodec,
    ...(options.orgLimits === true ? { orgLimits: new OrgLimits({ db, clock, config, controlLog }) } : {}),
    ...(options.disk ? { disk: options.disk } : {}),
    followDatabaseClock: options.followDatabaseClock ?? false,
  })
  await controlLog.start()
  return {
    limits,
    db,
    dataDir,
    heard: orgId => heard.get(String(orgId)) ?? 0n,
    async stop() {
      await controlLog.stop()
      await limits.stop()
    },
  }
}

/** Makes a clock whose time a test moves. Its timers are those of the machine. */
export function movableClock(startMs: number): Clock & { moveTo(ms: number): void } {
  let offsetMs = startMs - Date.now()
  return {
    ...systemClock,
    nowMs: () => Date.now() + offsetMs,
    moveTo(ms) {
      offsetMs = ms - Date.now()
    },
  }
}

export function caller(over: Partial<KeyPrincipal> = {}): KeyPrincipal {
  return {
    kind: 'key',
    orgId: 1,
    userId: 5,
    role: 'owner',
    keyId: 7,
    keyName: 'k',
    scope: 'full',
    workspaceId: null,
    limits: { rpmLimit: null, dailyLimit: null },
    policies: [],
    capabilities: [],
    ...over,
  }
}

export function request(needUinr: bigint, over: Partial<AdmissionRequest> = {}, atMs = Date.now()): AdmissionRequest {
  return { principal: caller(), eventId: systemIds.uuidv7(atMs), agentId: null, agentAncestorIds: [], needUinr, worstUinr: needUinr, ...over }
}

export function eventOf(asked: AdmissionRequest, valueUinr: bigint, over: Partial<UsageEvent> = {}): UsageEvent {
  return {
    id: asked.eventId,
    atMs: Number.parseInt(asked.eventId.replaceAll('-', '').slice(0, 12), 16),
    requestId: 'req_1',
    orgId: asked.principal.orgId,
    userId: asked.principal.userId,
    keyId: asked.principal.keyId,
    workspaceId: asked.principal.workspaceId,
    agentId: asked.agentId,
    agentLabel: null,
    kind: 'chat',
    model: 'm',
    provider: 'p',
    residency: 'global',
    streamed: false,
    byok: false,
    status: 200,
    outcome: 'ok',
    promptTokens: 3,
    completionTokens: 4,
    cachedTokens: 0,
    cacheWriteTokens: 0,
    images: 0,
    audioSeconds: 0,
    characters: 0,
    reasoningTokens: 0,
    estimated: false,
    valueUinr,
    costUinr: valueUinr,
    latencyMs: 1,
    firstByteMs: null,
    ...over,
  }
}

/** Makes one whole call: admits, opens and settles it with `valueUinr`. Throws the errors of the admission. */
export async function callOnce(engine: TestEngine, asked: AdmissionRequest, valueUinr: bigint): Promise<void> {
  const permit = await engine.limits.admit(asked)
  const atMs = permit.admittedAtMs
  void permit.open(eventOf(asked, 0n, { atMs }))
  await permit.settle(eventOf(asked, valueUinr, { atMs }))
}

/** Returns the code and the name of an error, or 'ok'. */
export async function outcomeOf(work: Promise<unknown> | unknown): Promise<string> {
  try {
    await work
    return 'ok'
  } catch (error) {
    return error instanceof Error && 'errorName' in error ? String(error.errorName) : String(error)
  }
}
