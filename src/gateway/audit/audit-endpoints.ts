import { z } from 'zod'
import { endpointOf } from '../../platform/endpoint.ts'
import { fail } from '../../platform/errors.ts'
import { startOfIstDayMs } from '../../platform/values/ist-time.ts'
import { type AuditFilter, type AuditTrail, auditScanMax } from './audit.ts'

const row = endpointOf<{ audit: AuditTrail }>()

const pageDefault = 50
const pageMax = 200

const actorKinds = ['user', 'key', 'agent', 'operator', 'system'] as const
const actorText = /^(user|key|agent|operator|system)(?::(\d{1,10}))?$/

const query = z.object({
  before: z
    .string()
    .regex(/^\d{1,18}$/, 'must be the next_before of an earlier page')
    .optional()
    .describe('next_before of the page before.'),
  limit: z.coerce.number().int().min(1).max(pageMax).optional().describe('Entries of a page. Default 50.'),
  actor: z
    .string()
    .regex(actorText, 'must be user, key, agent, operator or system, or one of them as user:12')
    .optional()
    .describe('A kind, or one actor: user:12, key:5, agent:7.'),
  act: z.string().max(100).optional().describe('Name of the act, for example createAgent.'),
  from: z.string().max(40).optional().describe('ISO 8601 instant, or an IST day YYYY-MM-DD.'),
  to: z.string().max(40).optional().describe('The same; an instant is excluded, a day is included.'),
})

const entry = z.object({
  id: z.int(),
  at: z.string().describe('ISO 8601, UTC.'),
  actor: z.object({
    kind: z.enum(actorKinds),
    id: z.int().nullable(),
    name: z.string().optional().describe('Mail address of a user, name of a key or agent.'),
  }),
  act: z.string().describe('Name of the endpoint or command.'),
  target: z.string().nullable().describe('On what, as id=12 pairs.'),
  source_ip: z.string().nullable(),
  request_id: z.string().nullable(),
  outcome: z.string().nullable().describe('ok or an error code; null: the process ended before the act did.'),
})

export const auditEndpoints = {
  audit: row({
    at: 'GET /me/audit',
    auth: 'session',
    access: { role: 'admin', orCapability: ['audit:view'] },
    tag: 'audit',
    summary: 'Who did what to what, from where and when, newest first. For owners, admins and holders of audit:view.',
    input: { query },
    output: z.object({
      entries: z.array(entry),
      next_before: z
        .int()
        .nullable()
        .describe(
          `Send it as before for the next page; null: this was the last. With filters a page looks at ${auditScanMax} lines and may be short, or empty, before that.`,
        ),
    }),
    errors: ['bad_request', 'forbidden', 'database_unavailable'],
    handle: ({ audit }, { query: asked }, call) => audit.list(call.principal.orgId, filterOf(asked), asked.limit ?? pageDefault),
  }),
}

function filterOf(asked: z.output<typeof query>): AuditFilter {
  const [, kind, id] = actorText.exec(asked.actor ?? '') ?? []
  return {
    before: asked.before === undefined ? null : BigInt(asked.before),
    actorKind: actorKinds.find(known => known === kind) ?? null,
    actorId: id === undefined ? null : String(Number(id)),
    act: asked.act ?? null,
    from: asked.from === undefined ? null : instantOf('from', asked.from, 0),
    to: asked.to === undefined ? null : instantOf('to', asked.to, 1),
  }
}

const instant = z.iso.datetime({ offset: true })
const dayMs = 24 * 3600 * 1000

/** Returns the instant that a text names. For a day, returns the beginning of the day (in IST) that is `daysLater` days later. */
function instantOf(name: string, text: string, daysLater: number): Date {
  const day = startOfIstDayMs(text)
  if (day !== null) return new Date(day + daysLater * dayMs)
  if (instant.safeParse(text).success) return new Date(text)
  throw fail('bad_request', { message: `"${name}" must be an ISO 8601 instant with a time zone, or a day YYYY-MM-DD.` })
}
