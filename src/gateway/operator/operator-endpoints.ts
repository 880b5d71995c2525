/** The endpoints of operators. Every row has the rule `operator`: for everybody else these paths do not exist. Decision 0732 says why. */
import { z } from 'zod'
import { cursorCharsMax } from '../../platform/db/list-cursor.ts'
import { endpointOf } from '../../platform/endpoint.ts'
import { searchText, textOf } from '../../platform/values/list-params.ts'
import { inrFromUinr } from '../../platform/values/money.ts'
import type { Mail } from '../mail/mail.ts'
import { orgSorts } from '../orgs/installation/org-list.ts'
import { type Maintenance, operatorMaxMs, setByOperator, withheldView } from '../routing/outages/maintenance.ts'
import { backlogView, endpointView, type OperatorWebhooks } from '../webhooks/operator-webhooks.ts'
import type { DoctorRuns } from './doctor-runs.ts'
import type { InstallationOrgs, OrgOfInstallation } from './organisations.ts'
import type { KeyTest, PlatformKeys } from './platform-keys.ts'

/** The services of these rows. */
export interface OperatorRowServices {
  readonly operatorDoctor: DoctorRuns
  readonly installationOrgs: InstallationOrgs
  readonly maintenance: Maintenance
  readonly platformKeys: PlatformKeys
  readonly outbox: Pick<Mail, 'outbox'> & { readonly isSent: boolean }
  readonly operatorWebhooks: OperatorWebhooks
}

const row = endpointOf<OperatorRowServices>()

const tag = 'operator'
/** What all rows have in common. */
const ofOperators = { auth: 'session', access: { operator: true }, tag } as const
const at = z.string().describe('ISO 8601, UTC.')
const pageDefault = 50
const pageMax = 100
const daysDefault = 30
const daysMax = 31
/** Maximum number of mails of each kind, and of webhook endpoints, in one reply. */
const listedMax = 50

const organisation = z.object({
  id: z.int(),
  name: z.string(),
  kind: z.enum(['personal', 'team']),
  created_at: at,
  member_count: z.int(),
  calls: z.int(),
  errors: z.int(),
  value_inr: z.number().describe('What the calls are worth at catalog prices; budgets count this.'),
  cost_inr: z.number().describe('What was charged. Calls on own provider keys cost 0.'),
  state: z.enum(['active', 'idle', 'empty']).describe('active: it made calls in the span. idle: it made none. empty: it has no active member.'),
})

const organisationView = ({ org, totals }: OrgOfInstallation): z.output<typeof organisation> => ({
  id: org.id,
  name: org.name,
  kind: org.kind,
  created_at: org.createdAt.toISOString(),
  member_count: org.memberCount,
  calls: totals.calls,
  errors: totals.errors,
  value_inr: inrFromUinr(totals.valueUinr),
  cost_inr: inrFromUinr(totals.costUinr),
  state: org.memberCount === 0 ? 'empty' : totals.calls > 0 ? 'active' : 'idle',
})

const withheld = z.object({
  route: z.string().describe('provider/model'),
  maintenance: z.literal(true),
  set_by: z.enum(['operator', 'gateway']),
  reason: z.string(),
  since: at,
  until: at,
})

const keyTest = z.object({
  provider: z.string(),
  status: z.enum(['ok', 'rejected', 'unreachable']),
  proven: z.boolean().nullable().describe('False: the provider answered, but has no call that would have told a wrong key. null: the test has failed.'),
  models: z.int().nullable().describe('How many models the key reaches, at most 2,000. null: the test has failed.'),
  why: z.string().nullable().describe('A status or an error code, when the provider could not be asked. It is never text of the provider.'),
  tested_at: at,
})

const keyTestView = ({ provider, outcome, testedAt }: KeyTest): z.output<typeof keyTest> => ({
  provider,
  status: outcome.kind,
  proven: outcome.kind === 'ok' ? outcome.proven : null,
  models: outcome.kind === 'ok' ? outcome.models.length : null,
  why: outcome.kind === 'unreachable' ? outcome.why : null,
  tested_at: testedAt.toISOString(),
})

const routePath = z.object({ route: z.string().min(3).max(320).describe('provider/model, as GET /v1/models lists the routes.') })

export const operatorEndpoints = {
  operatorDoctor: row({
    at: 'GET /me/operator/doctor',
    ...ofOperators,
    summary: 'What brigade doctor finds. A process runs the checks once at a time, and a report is used again for 5 seconds.',
    input: {},
    output: z.object({
      state: z.enum(['ok', 'warning', 'wrong']).describe('The worst state of all findings.'),
      findings: z.array(
        z.object({ what: z.string(), state: z.enum(['ok', 'warning', 'wrong']), detail: z.string().describe('What was found, and what to do about it.') }),
      ),
      checked_at: at,
    }),
    errors: ['not_found', 'unavailable'],
    async handle({ operatorDoctor }) {
      const { findings, checkedAt } = await operatorDoctor.report()
      const worst = (['wrong', 'warning'] as const).find(state => findings.some(finding => finding.state === state)) ?? 'ok'
      return { state: worst, findings: findings.map(({ what, state, detail }) => ({ what, state, detail })), checked_at: checkedAt.toISOString() }
    },
  }),

  operatorOrganisations: row({
    at: 'GET /me/operator/organisations',
    ...ofOperators,
    summary: 'The organisations of the installation with their size and usage. It shows nothing that an organisation keeps, and no person.',
    input: {
      query: z.object({
        q: searchText('A part of the name, or an id.'),
        sort: z.enum(orgSorts).optional().describe('Default newest.'),
        days: z.coerce.number().int().min(1).max(daysMax).optional().describe(`Indian days of the sums, today included. Default ${daysDefault}.`),
        limit: z.coerce.number().int().min(1).max(pageMax).optional().describe(`Default ${pageDefault}.`),
        cursor: z.string().max(cursorCharsMax).optional().describe('next_cursor of the page before.'),
      }),
    },
    output: z.object({
      organisations: z.array(organisation),
      from: z.string().describe('First Indian day of the sums.'),
      to: z.string().describe('Last Indian day of the sums.'),
      next_cursor: z.string().nullable(),
    }),
    errors: ['not_found', 'bad_request'],
    async handle({ installationOrgs }, { query: { q, sort, days, limit, cursor } }) {
      const page = await installationOrgs.page({ text: textOf(q), sort, limit: limit ?? pageDefault, cursor }, days ?? daysDefault)
      return { organisations: page.organisations.map(organisationView), from: page.from, to: page.to, next_cursor: page.nextCursor }
    },
  }),

  operatorMaintenance: row({
    at: 'GET /me/operator/maintenance',
    ...ofOperators,
    summary: 'The routes that are quarantined now, by an operator or by the gateway.',
    input: {},
    output: z.object({ withheld: z.array(withheld) }),
    errors: ['not_found'],
    handle: async ({ maintenance }) => ({ withheld: (await maintenance.list()).map(withheldView) }),
  }),

  setMaintenance: row({
    at: 'PUT /me/operator/maintenance/{route+}',
    ...ofOperators,
    summary: 'Quarantines a route: no call on a platform key uses it until then. Replaces an earlier quarantine.',
    input: {
      path: routePath,
      body: z.strictObject({
        for_s: z
          .int()
          .min(1)
          .max(operatorMaxMs / 1000)
          .describe('Length in seconds, at most 30 days.'),
      }),
    },
    output: withheld.extend({ ok: z.literal(true) }),
    errors: ['not_found', 'bad_request'],
    async handle({ maintenance }, { path, body }) {
      return { ok: true, ...withheldView(await maintenance.withhold(path.route, body.for_s * 1000, setByOperator)) }
    },
  }),

  clearMaintenance: row({
    at: 'DELETE /me/operator/maintenance/{route+}',
    ...ofOperators,
    summary: 'Releases a quarantined route immediately.',
    input: { path: routePath },
    output: z.object({ ok: z.literal(true), route: z.string(), maintenance: z.literal(false) }),
    errors: ['not_found'],
    async handle({ maintenance }, { path }) {
      await maintenance.clear(path.route)
      return { ok: true, route: path.route, maintenance: false }
    },
  }),

  operatorProviderKeys: row({
    at: 'GET /me/operator/provider-keys',
    ...ofOperators,
    summary: 'The providers for which the operator has set a key, with the last test by this process. It shows no part of a key.',
    input: {},
    output: z.object({
      providers: z.array(z.object({ id: z.string(), name: z.string(), residency: z.enum(['india', 'global', 'unknown']), last_test: keyTest.nullable() })),
    }),
    errors: ['not_found'],
    handle: ({ platformKeys }) => ({
      providers: platformKeys
        .list()
        .map(({ id, name, residency, lastTest }) => ({ id, name, residency, last_test: lastTest === null ? null : keyTestView(lastTest) })),
    }),
  }),

  testPlatformKey: row({
    at: 'POST /me/operator/provider-keys/{provider}/test',
    ...ofOperators,
    summary: "Tests the operator's key at a provider with a free request, at most once in 20 seconds.",
    input: { path: z.object({ provider: z.string().describe('Provider id, as GET /me/operator/provider-keys lists it.') }) },
    output: keyTest,
    errors: ['not_found', 'unknown_provider', 'unavailable', 'rate_limit_exceeded'],
    handle: async ({ platformKeys }, { path }) => keyTestView(await platformKeys.test(path.provider)),
  }),

  operatorOutbox: row({
    at: 'GET /me/operator/outbox',
    ...ofOperators,
    summary: 'The outbox of mail: what waits, and why mails were not sent. It shows no address and no text of a mail.',
    input: {},
    output: z.object({
      is_sent: z.boolean().describe('False: SMTP_URL is not set, so mail waits.'),
      waiting: z.int(),
      due_now: z.int().describe('Of these, the mails that the sender would send now.'),
      oldest_at: at.nullable().describe('When the oldest waiting mail was made.'),
      failed: z.int().describe('Mails that were given up in the last 90 days.'),
      unsent: z
        .array(
          z.object({
            id: z.int(),
            org_id: z.int().nullable(),
            template: z.string(),
            state: z.enum(['waiting', 'failed']),
            attempts: z.int(),
            created_at: at,
            next_attempt_at: at.nullable(),
            failed_at: at.nullable(),
            error: z.string().nullable().describe('Failed step and status of the mail server. It is never text of the server.'),
          }),
        )
        .describe(`At most ${listedMax} given-up mails, the newest first, and at most ${listedMax} that wait after a failed attempt.`),
    }),
    errors: ['not_found'],
    async handle({ outbox }) {
      const { waiting, dueNow, oldestAt, failed, unsent } = await outbox.outbox(listedMax)
      return {
        is_sent: outbox.isSent,
        waiting,
        due_now: dueNow,
        oldest_at: oldestAt?.toISOString() ?? null,
        failed,
        unsent: unsent.map(mail => ({
          id: Number(mail.id),
          org_id: mail.orgId,
          template: mail.template,
          state: mail.failedAt === null ? 'waiting' : 'failed',
          attempts: mail.attempts,
          created_at: mail.createdAt.toISOString(),
          next_attempt_at: mail.dueAt?.toISOString() ?? null,
          failed_at: mail.failedAt?.toISOString() ?? null,
          error: mail.lastError,
        })),
      }
    },
  }),

  operatorBacklog: row({
    at: 'GET /me/operator/backlog',
    ...ofOperators,
    summary: 'Webhook deliveries that are to be sent, and the endpoints of all organisations, those with problems first.',
    input: {},
    output: z.object({
      endpoints: z.int(),
      disabled: z.int().describe('Endpoints that the gateway disabled after failures.'),
      open: z.int().describe('Deliveries that are to be sent.'),
      due_now: z.int(),
      oldest_due_at: at.nullable(),
      late_s: z.int().nullable().describe('How long the oldest due delivery has waited for a process.'),
      dead_last_day: z.int().describe('Deliveries that were given up in the last day.'),
      webhooks: z
        .array(
          z.object({
            id: z.int(),
            org_id: z.int(),
            host: z.string().describe('Host of the URL. Its path may hold a secret of the receiver, so it is not shown.'),
            enabled: z.boolean(),
            disabled_reason: z.string().nullable(),
            failures: z.int().describe('Failed attempts since the last success.'),
            paused_until: at.nullable(),
            open: z.int(),
            oldest_at: at.nullable(),
            last_code: z.int().nullable().describe('HTTP status of the last attempt of the first delivery that waits after an attempt.'),
            last_error: z.string().nullable().describe('Error code of that attempt.'),
          }),
        )
        .describe(`At most ${listedMax}.`),
    }),
    errors: ['not_found'],
    async handle({ operatorWebhooks }) {
      const [backlog, webhooks] = await Promise.all([operatorWebhooks.backlog(), operatorWebhooks.list(null, listedMax)])
      return { ...backlogView(backlog), webhooks: webhooks.map(endpointView) }
    },
  }),
}
