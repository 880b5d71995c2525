/**
 * Three gateways on one database and one folder, of which one dies in every round; the callers of a round; the upstream. The gateways are separate
 * processes with a port each, or three workers of one supervisor behind one port. Decision 0545 gives the reasons.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { statement } from '../../src/platform/db/db.ts'
import { call, type Fleet, startFleet, tokenUinr } from '../harness/fleet.ts'
import { type GatewayProcess, workersOf } from '../harness/process.ts'
import { until } from '../harness/until.ts'
import type { RecordedRequest, UpstreamScript } from '../harness/upstream-server.ts'
import type { Barrier, CallerName } from './plan.ts'

const program = fileURLToPath(new URL('./gateway-with-barrier.mjs', import.meta.url))
const makeChild = statement<[parentId: number, childId: number]>('test.chaos_make_child', `update agents set parent_id = $1::int where id = $2::int`)

/** Caps of the callers of a round. The one near its end runs out in most rounds. */
export const caps = { nearTokens: 1500, agentTokens: 4000, childTokens: 1500, rpm: 60, daily: 12 } as const
/** A chunk of 60 characters counts as 20 tokens. */
const chunk = { chars: 60, tokens: 20 } as const

const memberCount = 3
/** How long after its death a process counts as living at most. */
const watchMs = 10

export interface Member {
  readonly baseUrl: string
  readonly pid: number
  /** Its id in the table of processes. */
  readonly id: bigint
  /** From now on it dies at that point. */
  arm(barrier: Barrier): void
  /** kill -9; resolves when it is gone. */
  kill(): Promise<void>
  /** Unix ms of its end; null while it runs. */
  diedAtMs(): number | null
}

export interface Caller {
  readonly token: string
  readonly keyId: number | null
  readonly agentId: number | null
}

export interface Stage {
  readonly fleet: Fleet
  readonly members: Member[]
  /** The members are workers behind one port, so a caller cannot choose which of them it calls. */
  readonly hasOnePort: boolean
  /** Starts a process in the place of one. The supervisor does this by itself; then this waits for the new worker. */
  replace(index: number): Promise<void>
  newCallers(): Promise<Readonly<Record<CallerName, Caller>>>
  stop(): Promise<void>
}

/** What the upstream of these rounds answers: as many tokens as the request allows, in chunks; slow ones take seconds. */
export function chaosAnswer(request: RecordedRequest): UpstreamScript {
  const tokens = Number(request.json?.['max_tokens'] ?? 1)
  const usage = { prompt_tokens: 10, completion_tokens: tokens, total_tokens: tokens + 10 }
  const chunks = Array.from({ length: Math.max(1, Math.floor(tokens / chunk.tokens)) }, () => 'x'.repeat(Math.min(chunk.chars, tokens * 3)))
  const isSlow = labelOf(request).endsWith('-slow')
  return { usage, chunks, chunkIntervalMs: isSlow ? 120 : 4 }
}

/** The label of a recorded request; it is its prompt. */
export const labelOf = (request: RecordedRequest): string => String((request.json?.['messages'] as { content: string }[] | undefined)?.[0]?.content)

/** Starts the gateways: separate processes, or `workers` behind one port. */
export async function startStage({ workers }: { readonly workers: boolean } = { workers: false }): Promise<Stage> {
  const fleet = await startFleet({ RECALL_WAIT_MS: '100', OFFLINE_MAX_MS: '20000' })
  fleet.upstream.script(chaosAnswer)
  const folder = fleet.newFolder()
  const notes = fleet.newFolder()
  const startProgram = (env: Readonly<Record<string, string>> = {}): Promise<GatewayProcess> =>
    fleet.start({ LOG_LEVEL: 'error', CHAOS_FOLDER: notes, ...env }, folder, program)
  const members: Member[] = []
  let start: () => Promise<Member>
  if (workers) {
    const supervisor = await startProgram({ WORKERS: String(memberCount), DB_POOL_MAX: '4' })
    const isNew = (pid: number): boolean => existsSync(join(notes, String(pid))) && !members.some(member => member.pid === pid)
    start = async () => {
      let pid: number | undefined
      await until(() => {
        pid = workersOf(supervisor).find(isNew)
        return pid !== undefined
      }, 'a new worker serves')
      return memberOf(notes, supervisor.baseUrl, pid as number)
    }
  } else
    start = async () => {
      const { child, baseUrl } = await startProgram()
      const pid = child.pid as number
      await until(() => existsSync(join(notes, String(pid))), 'a new process serves')
      return memberOf(notes, baseUrl, pid)
    }
  for (let i = 0; i < memberCount; i++) members.push(await start())
  let rounds = 0
  return {
    fleet,
    members,
    hasOnePort: workers,
    async replace(index) {
      members[index] = await start()
    },
    async newCallers() {
      rounds++
      const inr = (tokens: number): number => (tokens * Number(tokenUinr)) / 1e6
      const ofKey = ({ id, key }: { id: number; key: string }): Caller => ({ token: key, keyId: id, agentId: null })
      const ofAgent = ({ id, token }: { id: number; token: string }): Caller => ({ token, keyId: null, agentId: id })
      const parent = await fleet.newAgent(`parent ${rounds}`, inr(caps.agentTokens))
      const born = await fleet.newAgent(`child ${rounds}`, inr(caps.childTokens))
      await fleet.db.exec(makeChild, parent.id, born.id)
      const living = members.find(member => member.diedAtMs() === null)
      if (living === undefined) throw new Error('no process runs')
      // Its ancestors are in the token, so it is minted after the adoption.
      const minted = await call(living, fleet.key, 'POST', `/v1/me/agents/${born.id}/token`, {})
      return {
        free: ofKey(await fleet.newKey({ budgetInr: inr(10_000_000) })),
        near: ofKey(await fleet.newKey({ budgetInr: inr(caps.nearTokens) })),
        rpm: ofKey(await fleet.newKey({ rpm: caps.rpm })),
        daily: ofKey(await fleet.newKey({ daily: caps.daily })),
        agent: ofAgent(parent),
        child: ofAgent({ id: born.id, token: String(minted.json.access_token) }),
      }
    },
    stop: () => fleet.stop(),
  }
}

/** Watches a process that serves. */
function memberOf(notes: string, baseUrl: string, pid: number): Member {
  let diedAtMs: number | null = null
  const watch = setInterval(() => {
    if (isRunning(pid)) return
    diedAtMs = Date.now()
    clearInterval(watch)
  }, watchMs)
  watch.unref()
  return {
    baseUrl,
    pid,
    id: BigInt(readFileSync(join(notes, String(pid)), 'utf8')),
    arm(barrier) {
      writeFileSync(join(notes, `${pid}.barrier`), JSON.stringify(barrier))
      process.kill(pid, 'SIGUSR2')
    },
    async kill() {
      if (isRunning(pid)) process.kill(pid, 'SIGKILL')
      await until(() => diedAtMs !== null, `process ${pid} is gone`)
    },
    diedAtMs: () => diedAtMs,
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
