/** The operator's decisions about parked records and calls in doubt. They run in the process that owns the database. */
import { z } from 'zod'
import type { App } from '../../../composition/gateway.ts'
import type { ParkedRecord } from '../../../gateway/limits/parked-records.ts'
import { inrFromUinr } from '../../../platform/values/money.ts'
import { argsOf } from '../admin-args.ts'
import type { AdminCommand } from '../admin-socket.ts'
import { asOperator } from '../operator-act.ts'

const listArgs = z.object({ above: z.int().nonnegative().optional() })
const recordArgs = z.object({ id: z.int().positive() })
const callArgs = z.object({ org: z.int().positive(), call: z.string().regex(/^[0-9a-f]{16}$/, 'is not the name of a call') })
const discardArgs = z.object({ org: z.int().positive().optional(), call: z.string().optional(), process: z.int().positive().optional() })

/** Runs a command about parked records or calls in doubt, and returns its result. Returns null for another command. */
export function doubtCommand(app: App, command: AdminCommand): Promise<object> | null {
  switch (command.name) {
    case 'parked-list':
      return listParked(app, argsOf(listArgs, command))
    case 'parked-apply':
      return applyParked(app, argsOf(recordArgs, command))
    case 'parked-discard':
      return discardParked(app, argsOf(recordArgs, command))
    case 'in-doubt-list':
      return listDoubts(app)
    case 'in-doubt-apply':
      return decideCall(app, argsOf(callArgs, command), 'apply')
    case 'in-doubt-discard':
      return discardDoubt(app, command)
    default:
      return null
  }
}

async function listParked(app: App, { above }: z.output<typeof listArgs>): Promise<object> {
  return { records: (await app.limits.parkedRecords.list(BigInt(above ?? 0))).map(viewOf) }
}

/** The audit line belongs to the organisation that is charged. The record must be read first to find this organisation. */
async function applyParked(app: App, { id }: z.output<typeof recordArgs>): Promise<object> {
  return asOperator(app.audit, { act: 'applyParkedRecord', orgId: null, target: `parked=${id}` }, async () => {
    const { record, isCharged } = await app.limits.parkedRecords.apply(BigInt(id))
    return { ...viewOf(record), charged: isCharged }
  })
}

async function discardParked(app: App, { id }: z.output<typeof recordArgs>): Promise<object> {
  return asOperator(app.audit, { act: 'discardParkedRecord', orgId: null, target: `parked=${id}` }, async () => ({
    ...viewOf(await app.limits.parkedRecords.discard(BigInt(id))),
    charged: false,
  }))
}

async function listDoubts(app: App): Promise<object> {
  const { recovery } = app.limits
  const [processes, calls] = await Promise.all([recovery.silent(), app.idempotency.inDoubt(recovery.silentMs)])
  return {
    processes: processes.map(({ id, journal, silentSeconds, counters, mostUinr }) => ({
      process: Number(id),
      silent_s: silentSeconds,
      counters,
      most_inr: inrFromUinr(mostUinr),
      journal,
    })),
    calls: calls.map(({ orgId, call, principal, state, processId, reservedAt, usage }) => ({
      org_id: orgId,
      call,
      caller: principal,
      state,
      process: Number(processId),
      since: reservedAt.toISOString(),
      request_id: requestIdOf(usage),
      usage,
    })),
  }
}

async function decideCall(app: App, { org, call }: z.output<typeof callArgs>, decision: 'apply' | 'discard'): Promise<object> {
  const act = { act: decision === 'apply' ? 'applyCallInDoubt' : 'discardCallInDoubt', orgId: org, target: `call=${call}` }
  await asOperator(app.audit, act, () => app.idempotency.decide(org, call, decision, app.limits.recovery.silentMs))
  return { org_id: org, call, decided: decision }
}

async function discardDoubt(app: App, command: AdminCommand): Promise<object> {
  const { process, org, call } = argsOf(discardArgs, command)
  if ((process === undefined) === (org === undefined || call === undefined)) throw new Error('say either --process <id>, or --org <id> with --call <id>')
  return process === undefined ? decideCall(app, argsOf(callArgs, command), 'discard') : releaseProcess(app, process)
}

/** Releases everything that a dead process holds when its disk is lost. The Idempotency-Keys of its calls can then be used again. */
export async function releaseProcess(app: App, process: number): Promise<object> {
  const act = { act: 'releaseProcess', orgId: null, target: `process=${process}` }
  const counters = await asOperator(app.audit, act, () => app.limits.recovery.release(BigInt(process)))
  return { process, released: counters }
}

function requestIdOf(usage: unknown): string | null {
  return typeof usage === 'object' && usage !== null && 'request_id' in usage ? String(usage.request_id) : null
}

const viewOf = ({ id, at, orgId, processId, kind, eventId, valueUinr, reason }: ParkedRecord): object => ({
  id: Number(id),
  at: at.toISOString(),
  org_id: orgId,
  process: Number(processId),
  kind,
  event_id: eventId,
  value_inr: inrFromUinr(valueUinr),
  reason,
})
