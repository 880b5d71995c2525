import { z } from 'zod'
import { cursorCharsMax } from '../../platform/db/list-cursor.ts'
import { endpointOf, reply } from '../../platform/endpoint.ts'
import { fail } from '../../platform/errors.ts'
import type { Principal } from '../../platform/security/principal.ts'
import { capsAfter, runCapsShape, runCapsView, runCapsViewOf } from '../../platform/security/run-caps.ts'
import { toolPattern, toolPatternMaxChars } from '../../platform/security/tool-patterns.ts'
import { ownerOf, searchText, textOf } from '../../platform/values/list-params.ts'
import { uinrFromInr } from '../../platform/values/money.ts'
import { rowId } from '../../platform/values/row-id.ts'
import { type KeyActor, type KeyConsole, keysPageMax } from './key-console.ts'
import { allowListMaxBytes, expiresDaysMax, isShortList, limitMax, overlapDaysMax } from './key-rules.ts'
import { keySorts } from './listing/key-list.ts'
import { keyStates } from './listing/list-queries.ts'

const row = endpointOf<{ keyConsole: KeyConsole }>()

/** Largest amount of a budget or of a cap per call, in rupees. */
const inrMax = 1_000_000_000
const inrMin = 0.000001
const allowedMax = 100
const concurrencyMax = 100_000

const limit = z.int().min(0).max(limitMax).nullable()
const allowed = z
  .array(
    z
      .string()
      .trim()
      .min(1)
      .max(200)
      .regex(/^\P{Cc}*$/u, 'must not hold control characters'),
  )
  .min(1)
  .max(allowedMax)
  .refine(isShortList, `at most ${allowListMaxBytes} bytes together`)
  .nullable()

/** Fields that POST and PATCH share. Null means no limit. */
const rules = {
  rpm_limit: limit.optional().describe('Requests a minute; null = none.'),
  daily_limit: limit.optional().describe('Calls of a day in India; null = none.'),
  budget_inr: z.number().min(0).max(inrMax).nullable().optional().describe('Rupees a month (IST); null = none.'),
  lifecycle_pin: z.literal('keep').nullable().optional().describe('keep: never disabled for inactivity.'),
  allowed_models: allowed.optional().describe('Model ids that calls of the key may use; null = all.'),
  allowed_providers: allowed.optional().describe('Provider ids that calls of the key may go to, byoe:<slug> for servers of the organisation; null = all.'),
  max_cost_inr_per_call: z.number().min(inrMin).max(inrMax).nullable().optional().describe('Most that one call may cost in the worst case, in rupees.'),
  max_output_tokens: z.int().min(1).max(limitMax).nullable().optional().describe('Most output tokens of one call.'),
  max_concurrency: z.int().min(1).max(concurrencyMax).nullable().optional().describe('Most concurrent calls.'),
  tpm_limit: z
    .int()
    .min(1)
    .max(limitMax)
    .nullable()
    .optional()
    .describe('Most tokens a minute: prompts without what came from a cache, and answers; null = none.'),
  allowed_tools: z
    .array(z.string().max(toolPatternMaxChars).regex(toolPattern, 'must be the public name of a tool, or slug__* for all tools of a server'))
    .max(allowedMax)
    .nullable()
    .optional()
    .describe('Tools of MCP servers that calls of the key may use: public names, and slug__* for all tools of a server; null or empty = none.'),
  run: runCapsShape.nullable().optional().describe('Caps of each run of the key; null removes them all.'),
}
type Rules = z.output<z.ZodObject<typeof rules>>

const policyView = {
  lifecycle_pin: z.literal('keep').nullable(),
  allowed_models: z.array(z.string()).nullable(),
  allowed_providers: z.array(z.string()).nullable(),
  max_cost_inr_per_call: z.number().nullable(),
  max_output_tokens: z.int().nullable(),
  max_concurrency: z.int().nullable(),
  tpm_limit: z.int().nullable(),
  allowed_tools: z.array(z.string()).nullable(),
  run: runCapsView.nullable().describe('Caps of each run of the key; null = none.'),
}
const common = {
  id: z.int(),
  prefix: z.string().describe('The start of the key.'),
  name: z.string(),
  tier: z.enum(['trial', 'standard']),
  scope: z.enum(['full', 'inference']),
  workspace_id: z.int().nullable(),
  rpm_limit: z.int().nullable(),
  daily_limit: z.int().nullable(),
  budget_inr: z.number().nullable(),
  expires_at: z.string().nullable().describe('ISO 8601, UTC.'),
  created_at: z.string(),
  ...policyView,
}
const keyView = z.object({
  ...common,
  state: z.enum(keyStates),
  enabled: z.boolean(),
  owner: z.object({ uid: z.int() }).nullable().describe('The member behind the key; null for a key of the operator.'),
  spend_month_inr: z.number().describe('Usage value of the running month (IST) in rupees.'),
  last_used_at: z.string().nullable(),
  inactivity_notice_at: z.string().nullable().describe('When notice was given that the unused key will be disabled.'),
  rotated_at: z.string().nullable(),
  previous_until: z.string().nullable().describe('Until when the secret before the last rotation works.'),
})
const keyPath = z.object({ id: z.string().describe('Key id.') })
const noStore = { 'cache-control': 'no-store' }

/** Returns the id in the path. Throws `not_found` for a text that is not an id. */
function idOf(path: { id: string }): number {
  const id = rowId(path.id)
  if (id === null) throw fail('not_found', { message: 'There is no such key. GET /me/keys lists those of this organisation.' })
  return id
}

function actorOf(principal: Principal): KeyActor {
  if (principal.kind !== 'session') throw fail('no_session')
  return principal
}

/** Renames the fields of the body to those of the service. A field that is absent in the body stays undefined. */
function rulesOf(body: Rules) {
  const cost = body.max_cost_inr_per_call
  return {
    limits: { rpmLimit: body.rpm_limit, dailyLimit: body.daily_limit, lifecyclePin: body.lifecycle_pin },
    policies: {
      allowedModels: unique(body.allowed_models),
      allowedProviders: unique(body.allowed_providers),
      maxCostUinr: cost === undefined || cost === null ? cost : uinrFromInr(cost),
      maxOutputTokens: body.max_output_tokens,
      maxConcurrency: body.max_concurrency,
      tpmLimit: body.tpm_limit,
      allowedTools: unique(body.allowed_tools),
      run: body.run,
    },
  }
}

function unique(names: readonly string[] | null | undefined): readonly string[] | null | undefined {
  return names === undefined || names === null ? names : [...new Set(names)]
}

export const keyEndpoints = {
  listKeys: row({
    at: 'GET /me/keys',
    auth: 'session',
    access: {},
    tag: 'keys',
    summary:
      'The API keys of the organisation, with limits, budget and spend of the month: those that are not revoked, newest first. Never the keys themselves.',
    input: {
      query: z.object({
        q: searchText('A part of the name, in upper or lower case, an id, or the start of a key from six characters on.'),
        state: z.enum(keyStates).optional().describe('Left out: all except revoked.'),
        owner: z.string().optional().describe('The user id of the member behind the key, or me.'),
        sort: z.enum(keySorts).optional().describe('created (newest first, the default), name, or last_used (latest first).'),
        limit: z.coerce.number().int().min(1).max(keysPageMax).optional().describe(`Keys of a page, at most ${keysPageMax}.`),
        cursor: z.string().max(cursorCharsMax).optional().describe('next_cursor of the page before, in the same order.'),
      }),
    },
    output: z.object({ keys: z.array(keyView), next_cursor: z.string().nullable() }),
    errors: ['bad_request'],
    handle: ({ keyConsole }, { query: { q, owner, limit = keysPageMax, ...rest } }, { principal }) =>
      keyConsole.list(principal.orgId, { ...rest, text: textOf(q), ownerUser: ownerOf(owner, principal), limit }),
  }),

  createKey: row({
    at: 'POST /me/keys',
    auth: 'session',
    access: {},
    tag: 'keys',
    summary: 'Makes an API key of the caller. The key is in this reply and nowhere else. Limits above the defaults are for owners and admins.',
    input: {
      body: z.strictObject({
        name: z.string().nullish().describe('1 to 100 characters, unique among the active keys. Default: "key <date> <n>".'),
        expires_days: z.int().min(1).max(expiresDaysMax).nullish().describe(`Whole days of life, 1 to ${expiresDaysMax}; default: no end.`),
        scope: z.enum(['full', 'inference']).optional().describe('inference: calls of models only, no management. Default: full.'),
        workspace_id: z.int().nullish().describe('The workspace that its usage counts in.'),
        ...rules,
      }),
    },
    output: z.object({ ...common, key: z.string().describe('The whole key. It is shown once.') }),
    status: 201,
    errors: ['bad_request', 'bad_name', 'duplicate_key_name', 'trial_ceiling', 'forbidden', 'not_found', 'org_limit_reached'],
    async handle({ keyConsole }, { body }, call) {
      const { limits, policies } = rulesOf(body)
      const made = await keyConsole.create(actorOf(call.principal), {
        name: body.name ?? null,
        scope: body.scope ?? 'full',
        workspaceId: body.workspace_id ?? null,
        budgetInr: body.budget_inr ?? null,
        expiresDays: body.expires_days ?? undefined,
        ...limits,
        policies,
      })
      const view: z.output<z.ZodObject<typeof common>> & { key: string } = {
        id: made.id,
        key: made.key,
        prefix: made.prefix,
        name: made.name,
        tier: made.tier,
        scope: made.scope,
        workspace_id: body.workspace_id ?? null,
        rpm_limit: made.rpmLimit,
        daily_limit: made.dailyLimit,
        budget_inr: body.budget_inr ?? null,
        expires_at: made.expiresAt?.toISOString() ?? null,
        created_at: made.createdAt.toISOString(),
        lifecycle_pin: body.lifecycle_pin ?? null,
        allowed_models: policies.allowedModels ? [...policies.allowedModels] : null,
        allowed_providers: policies.allowedProviders ? [...policies.allowedProviders] : null,
        max_cost_inr_per_call: body.max_cost_inr_per_call ?? null,
        max_output_tokens: body.max_output_tokens ?? null,
        max_concurrency: body.max_concurrency ?? null,
        tpm_limit: body.tpm_limit ?? null,
        allowed_tools: policies.allowedTools ? [...policies.allowedTools] : null,
        run: runCapsViewOf(capsAfter(null, body.run ?? null)),
      }
      return reply.json(view, 201, noStore)
    },
  }),

  changeKey: row({
    at: 'PATCH /me/keys/{id}',
    auth: 'session',
    access: { role: 'admin' },
    tag: 'keys',
    summary: 'Changes the fields in the body; null removes a value. The change applies from the next call on, and in other processes within a second.',
    input: { path: keyPath, body: z.strictObject({ name: z.string().optional(), enabled: z.boolean().optional(), ...rules }) },
    output: z.object({ ok: z.literal(true), key: keyView }),
    errors: ['bad_request', 'bad_name', 'duplicate_key_name', 'trial_ceiling', 'not_found'],
    async handle({ keyConsole }, { path, body }, call) {
      const { limits, policies } = rulesOf(body)
      const changes = { name: body.name, enabled: body.enabled, budgetInr: body.budget_inr, ...limits, ...policies }
      return { ok: true, key: await keyConsole.change(call.principal.orgId, idOf(path), changes) }
    },
  }),

  revokeKey: row({
    at: 'DELETE /me/keys/{id}',
    auth: 'session',
    access: { role: 'admin' },
    tag: 'keys',
    summary: 'Ends a key permanently and cuts its running calls. Safe to repeat.',
    input: { path: keyPath },
    output: z.object({ ok: z.literal(true), key: keyView }),
    errors: ['not_found'],
    handle: async ({ keyConsole }, { path }, call) => ({ ok: true, key: await keyConsole.revoke(call.principal.orgId, idOf(path)) }),
  }),

  rotateKey: row({
    at: 'POST /me/keys/{id}/rotate',
    auth: 'session',
    access: {},
    tag: 'keys',
    summary:
      'Gives a key a new secret; id, limits, budget and spend stay. The secret before it works for overlap_days more, one older than that ends now. For the person whose key it is; keys without a person are for owners and admins.',
    input: {
      path: keyPath,
      body: z.strictObject({
        overlap_days: z.number().min(0).max(overlapDaysMax).optional().describe('0: the old secret ends now. Fractions count. Default: 1.'),
      }),
    },
    output: z.object({
      ok: z.literal(true),
      id: z.int(),
      key: z.string().describe('The whole key. It is shown once.'),
      prefix: z.string(),
      name: z.string(),
      rotated_at: z.string(),
      previous_until: z.string().describe('Until when the old secret works.'),
    }),
    errors: ['bad_request', 'forbidden', 'not_found'],
    async handle({ keyConsole }, { path, body }, call) {
      const { rotatedAt, previousUntil, ...rotated } = await keyConsole.rotate(actorOf(call.principal), idOf(path), body.overlap_days ?? 1)
      return reply.json({ ok: true, ...rotated, rotated_at: rotatedAt.toISOString(), previous_until: previousUntil.toISOString() }, 200, noStore)
    },
  }),
}
