import { z } from 'zod'
import { endpointOf } from '../../platform/endpoint.ts'
import type { Principal } from '../../platform/security/principal.ts'
import type { DisplayRate } from '../../platform/display-rate.ts'
import type { Accounts, OwnOrg } from './accounts/account.ts'
import { reader, signedIn } from './accounts/signed-in.ts'
import type { OrgDisplay } from './org-display.ts'
import type { OrgSettings } from './org-settings.ts'

const row = endpointOf<{ accounts: Accounts; orgSettings: OrgSettings; orgDisplay: OrgDisplay }>()

const role = z.enum(['member', 'admin', 'owner'])
const kind = z.enum(['personal', 'team'])
const nameInput = z.string().describe('1 to 100 characters without control characters.')
/** A text without control characters, so that it always fits on one line. */
const lineOf = (charactersMax: number) =>
  z
    .string()
    .trim()
    .min(1)
    .max(charactersMax)
    .regex(/^\P{Cc}*$/u, 'must not hold control characters')

const displayRate = z.object({
  rate: z.string().describe('Rupees for one unit of the currency.'),
  rate_as_of: z.string().describe('The day of the rate, YYYY-MM-DD.'),
})

const me = z.object({
  user: z.object({ id: z.int().nullable(), email: z.string().nullable(), name: z.string().nullable(), avatar_url: z.string().nullable() }),
  role,
  capabilities: z.array(z.string()),
  org: z.object({
    id: z.int(),
    name: z.string(),
    domain: z.string().nullable(),
    kind,
    data_retention_days: z.int().describe('0 = zero retention.'),
    key_inactivity_days: z.int().nullable().describe('null = keys are not disabled for want of use.'),
    display_currency: z.string().nullable().describe('The currency beside rupees in reports; null = rupees only.'),
    display_rate: displayRate.nullable().describe('null: no display currency, or the operator has no rate for it any more. Reports then show rupees only.'),
  }),
  id: z.int().nullable().describe('The same as user.id, as are the other flat fields.'),
  email: z.string().nullable(),
  org_name: z.string(),
  domain: z.string().nullable(),
  is_operator: z.boolean().describe('Whether this session may use the endpoints below /me/operator.'),
  attributed: z.boolean().describe('Whether POST /me/attribution has been answered.'),
})
const okMe = me.extend({ ok: z.literal(true) })
const ownOrg = z.object({
  id: z.int(),
  name: z.string(),
  kind,
  role,
  member_count: z.int(),
  active: z.boolean().describe('The one in which this session works.'),
})

async function viewOf(
  { accounts, orgDisplay }: { readonly accounts: Accounts; readonly orgDisplay: OrgDisplay },
  principal: Principal,
): Promise<z.output<typeof me>> {
  const { person, org } = await accounts.view(principal.userId, principal.orgId)
  const [id, email] = [person?.id ?? null, person?.email ?? null]
  return {
    user: { id, email, name: person?.name ?? null, avatar_url: person?.avatarUrl ?? null },
    role: principal.role ?? 'member',
    capabilities: [...principal.capabilities],
    org: {
      id: org.id,
      name: org.name,
      domain: org.domain,
      kind: org.kind,
      data_retention_days: org.retentionDays,
      key_inactivity_days: org.keyInactivityDays,
      display_currency: org.displayCurrency,
      display_rate: rateView(org.displayCurrency === null ? null : orgDisplay.rate(org.displayCurrency)),
    },
    id,
    email,
    org_name: org.name,
    domain: org.domain,
    is_operator: principal.kind === 'session' && principal.isOperator === true,
    attributed: person?.isAttributed ?? false,
  }
}

const rateView = (rate: DisplayRate | null): z.output<typeof displayRate> | null => (rate === null ? null : { rate: rate.rate, rate_as_of: rate.asOf })

const orgView = (org: OwnOrg, activeId: number): z.output<typeof ownOrg> => ({
  id: org.id,
  name: org.name,
  kind: org.kind,
  role: org.role,
  member_count: org.memberCount,
  active: org.id === activeId,
})

export const orgEndpoints = {
  me: row({
    at: 'GET /me',
    auth: 'session',
    access: {},
    tag: 'people',
    summary: 'Who is signed in, with which role, in which organisation.',
    input: {},
    output: me,
    errors: [],
    handle: (services, _input, call) => viewOf(services, call.principal),
  }),

  updateMe: row({
    at: 'PATCH /me',
    auth: 'session',
    access: {},
    tag: 'people',
    summary: 'Changes the display name, or takes the picture away (avatar_url: null). Other fields are ignored.',
    input: { body: z.object({ name: nameInput.optional(), avatar_url: z.null('can only be set to null').optional() }) },
    output: okMe,
    errors: ['bad_name'],
    async handle(services, { body }, call) {
      const { userId } = signedIn(call.principal)
      await services.accounts.update(userId, { ...(body.name === undefined ? {} : { name: body.name }), dropsAvatar: body.avatar_url === null })
      return { ok: true, ...(await viewOf(services, call.principal)) }
    },
  }),

  updateOrg: row({
    at: 'PATCH /me/org',
    auth: 'session',
    access: { role: 'owner' },
    tag: 'people',
    summary: 'Renames the organisation.',
    input: { body: z.strictObject({ name: nameInput }) },
    output: okMe,
    errors: ['bad_name'],
    async handle(services, { body }, call) {
      await services.orgSettings.rename(call.principal.orgId, body.name)
      return { ok: true, ...(await viewOf(services, call.principal)) }
    },
  }),

  listOrgs: row({
    at: 'GET /me/orgs',
    auth: 'session',
    access: {},
    tag: 'people',
    summary: 'The organisations of the signed-in person; an agent sees the one in which it works.',
    input: {},
    output: z.object({ orgs: z.array(ownOrg) }),
    errors: [],
    async handle({ accounts }, _input, call) {
      const orgs = await accounts.orgsOf(reader(call.principal))
      return { orgs: orgs.map(org => orgView(org, call.principal.orgId)) }
    },
  }),

  createOrg: row({
    at: 'POST /me/orgs',
    auth: 'session',
    access: {},
    tag: 'people',
    summary: 'Makes a team organisation, owned by the caller. The session stays where it is.',
    input: { body: z.strictObject({ name: nameInput }) },
    output: ownOrg,
    status: 201,
    errors: ['bad_name', 'team_cap'],
    handle: async ({ accounts }, { body }, call) => orgView(await accounts.createTeam(signedIn(call.principal).userId, body.name), call.principal.orgId),
  }),

  switchOrg: row({
    at: 'POST /me/orgs/switch',
    auth: 'session',
    access: {},
    tag: 'people',
    summary: 'Moves this session to another organisation of the person.',
    input: { body: z.strictObject({ org_id: z.number() }) },
    output: z.object({ ok: z.literal(true), org: ownOrg }),
    errors: ['not_found'],
    async handle({ accounts }, { body }, call) {
      const org = await accounts.switchOrg(signedIn(call.principal), body.org_id)
      return { ok: true, org: orgView(org, org.id) }
    },
  }),

  setDataRetention: row({
    at: 'PUT /me/org/data-retention',
    auth: 'session',
    access: { role: 'admin' },
    tag: 'people',
    summary:
      'Sets the data-retention window in days. A window allows the models that need one and keeps content for that time; 0 closes it and deletes the content.',
    input: { body: z.strictObject({ days: z.int().min(0).max(30) }) },
    output: z.object({ ok: z.literal(true), days: z.int() }),
    errors: [],
    async handle({ orgSettings }, { body }, call) {
      await orgSettings.setRetention(call.principal.orgId, body.days)
      return { ok: true, days: body.days }
    },
  }),

  setKeyInactivity: row({
    at: 'PUT /me/org/key-inactivity',
    auth: 'session',
    access: { role: 'admin' },
    tag: 'people',
    summary: 'Sets after how many days without use a key is disabled; null switches that off.',
    input: { body: z.strictObject({ days: z.int().min(1).max(36_500).nullable() }) },
    output: z.object({ ok: z.literal(true), days: z.int().nullable() }),
    errors: [],
    async handle({ orgSettings }, { body }, call) {
      await orgSettings.setKeyInactivity(call.principal.orgId, body.days)
      return { ok: true, days: body.days }
    },
  }),

  setDisplayCurrency: row({
    at: 'PUT /me/org/display-currency',
    auth: 'session',
    access: { role: 'admin' },
    tag: 'people',
    summary:
      'Sets the currency that reports, CSV and the console show beside rupees; null: rupees only. The operator sets the rates (FX_RATES). Limits, balances and invoices stay in rupees.',
    input: {
      body: z.strictObject({
        currency: z
          .string()
          .regex(/^[A-Z]{3}$/, 'must be a code of ISO 4217, such as USD')
          .nullable(),
      }),
    },
    output: z.object({ ok: z.literal(true), currency: z.string().nullable(), display_rate: displayRate.nullable() }),
    errors: ['bad_request'],
    async handle({ orgSettings, orgDisplay }, { body: { currency } }, call) {
      if (currency !== null) orgDisplay.check(currency)
      await orgSettings.setDisplayCurrency(call.principal.orgId, currency)
      return { ok: true, currency, display_rate: rateView(currency === null ? null : orgDisplay.rate(currency)) }
    },
  }),

  attribute: row({
    at: 'POST /me/attribution',
    auth: 'session',
    access: {},
    tag: 'people',
    summary: 'Answers once how the person came here. A second answer changes nothing.',
    input: { body: z.object({ source: lineOf(100), detail: lineOf(500).nullish() }) },
    output: z.object({ ok: z.literal(true), attributed: z.literal(true) }),
    audit: false,
    errors: [],
    async handle({ accounts }, { body }, call) {
      await accounts.attribute(signedIn(call.principal).userId, body.source, body.detail ?? null)
      return { ok: true, attributed: true }
    },
  }),
}
