/** A memory service over a real database, for domain tests. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { MemoryCall } from '../../src/memory/access/memory-call.ts'
import { createMemory, type Memory, type MemoryDeps } from '../../src/memory/memory.ts'
import { usageOf } from '../../src/memory/objects/queries.ts'
import { type Clock, systemClock } from '../../src/platform/clock.ts'
import type { Db } from '../../src/platform/db/db.ts'
import { ControlLog } from '../../src/platform/db/db-control-log.ts'
import { toGatewayError } from '../../src/platform/errors.ts'
import { silentLog } from '../../src/platform/observe/log.ts'
import { createOutbound } from '../../src/platform/outbound/outbound.ts'
import type { AgentPrincipal, KeyPrincipal } from '../../src/platform/security/principal.ts'
import { makeSealer } from '../../src/platform/security/secrets.ts'
import { systemIds } from '../../src/platform/values/ids.ts'

export interface TestMemory {
  readonly memory: Memory
  readonly clock: Clock & { advance(ms: number): void }
  usage(orgId: number): Promise<{ usedBytes: bigint; reservedBytes: bigint; objects: bigint }>
  close(): Promise<void>
}

export interface TestMemoryOptions {
  readonly db: Db
  readonly allow?: readonly string[]
  readonly agentByLabel?: NonNullable<MemoryDeps['agentByLabel']>
  readonly timeoutMs?: number
  readonly isFolderAllowed?: boolean
  readonly reconcileBounds?: MemoryDeps['reconcileBounds']
  readonly heavyTurns?: MemoryDeps['heavyTurns']
}

export async function testMemory(options: TestMemoryOptions): Promise<TestMemory> {
  const dataDir = await mkdtemp(join(tmpdir(), 'brigade-memory-'))
  let offsetMs = 0
  const advanceBy = (ms: number): void => {
    offsetMs += ms
  }
  const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + offsetMs, advance: advanceBy }
  const outbound = createOutbound({ connectTimeoutMs: 5000, firstByteTimeoutMs: 20_000, streamIdleTimeoutMs: 20_000, allow: options.allow ?? [] })
  const controlLog = new ControlLog({ db: options.db, clock, log: silentLog, pollMs: 200 })
  await controlLog.start()
  const memory = createMemory({
    db: options.db,
    controlLog,
    clock,
    ids: systemIds,
    log: silentLog,
    sealer: makeSealer(Buffer.alloc(32, 7)),
    guard: outbound.guard,
    addressTests: { take: () => {}, passed: () => {} },
    kind: options.db.kind,
    dataDir,
    config: {
      MEMORY_OBJECT_MAX_BYTES: 2 * 1024 * 1024,
      MEMORY_INTENT_MS: 60_000,
      CACHE_TTL_MS: 30_000,
      STORE_TIMEOUT_MS: options.timeoutMs ?? 20_000,
      FOLDER_STORE: options.isFolderAllowed ?? true,
    },
    reconcileBounds: options.reconcileBounds,
    heavyTurns: options.heavyTurns,
    ...(options.agentByLabel === undefined ? {} : { agentByLabel: options.agentByLabel }),
  })
  return {
    memory,
    clock,
    usage: orgId => options.db.one(usageOf, orgId),
    async close() {
      memory.stop()
      await controlLog.stop()
      await outbound.close()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

export function keyOf(orgId: number, more: Partial<KeyPrincipal> = {}): KeyPrincipal {
  return {
    kind: 'key',
    orgId,
    userId: 7,
    role: 'member',
    keyId: 70,
    keyName: 'k',
    scope: 'full',
    workspaceId: null,
    limits: { rpmLimit: null, dailyLimit: null },
    policies: [],
    capabilities: [],
    ...more,
  }
}

export function agentOf(orgId: number, more: Partial<AgentPrincipal> = {}): AgentPrincipal {
  return {
    kind: 'agent',
    orgId,
    userId: 7,
    role: 'member',
    agentId: 9,
    agentName: 'triage é',
    ancestorIds: [],
    epoch: 1,
    tokenIds: [],
    keyId: 70,
    keyName: 'k',
    scopes: ['inference', 'memory:read', 'memory:write', 'usage:read'],
    workspaceId: null,
    limits: { rpmLimit: null, dailyLimit: null },
    policies: [],
    capabilities: [],
    expiresAtMs: Number.MAX_SAFE_INTEGER,
    lifeSeconds: 900,
    ...more,
  }
}

export function callFrom(principal: KeyPrincipal | AgentPrincipal, agentLabel: string | null = null): MemoryCall {
  return { principal, agentLabel, signal: new AbortController().signal }
}

/** Returns the name of the error with which a call ends, or 'ok'. */
export async function errorCode(work: () => unknown): Promise<string> {
  try {
    await work()
    return 'ok'
  } catch (error) {
    const known = toGatewayError(error)
    if (known.errorName === 'internal_error') throw error
    return known.errorName
  }
}
