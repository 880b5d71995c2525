import { z } from 'zod'
import type { App } from '../../../composition/gateway.ts'
import { setByOperator, withheldView } from '../../../gateway/routing/outages/maintenance.ts'
import { fail } from '../../../platform/errors.ts'
import { uinrFromInr } from '../../../platform/values/money.ts'
import { argsOf } from '../admin-args.ts'
import type { AdminCommand, AdminHandler } from '../admin-socket.ts'
import { backupCommand } from '../backup.ts'
import { masterKeyCommand } from '../master-key.ts'
import { asOperator } from '../operator-act.ts'
import { billingCommand } from './admin-billing-commands.ts'
import { webhookCommand } from './admin-webhook-commands.ts'
import { doubtCommand, releaseProcess } from './doubt-commands.ts'

const createArgs = z.object({
  email: z.string(),
  org: z.string().min(1).max(100),
  rpm: z.int().positive().nullable().optional(),
  daily: z.int().positive().nullable().optional(),
  orgBudgetInr: z.number().positive().optional(),
  keyBudgetInr: z.number().positive().optional(),
})
const keyArgs = z.object({
  org: z.int().positive(),
  email: z.string().optional(),
  name: z.string().min(1).max(100),
  scope: z.enum(['full', 'inference']),
  rpm: z.int().positive().nullable().optional(),
  daily: z.int().positive().nullable().optional(),
  keyBudgetInr: z.number().positive().optional(),
  workspace: z.int().positive().optional(),
  expiresDays: z.int().positive().optional(),
  maxConcurrency: z.int().positive().optional(),
  maxOutputTokens: z.int().positive().optional(),
  maxCostInr: z.number().min(0.000001).optional(),
})

const signInArgs = z.object({ email: z.string().min(1) })
const revokeArgs = z.object({ org: z.int().positive(), key: z.int().positive() })
const budgetArgs = z.object({
  org: z.int().positive(),
  scope: z.enum(['org', 'key', 'agent']),
  id: z.int().positive().optional(),
  inr: z.number().min(0.000001).optional(),
  clear: z.literal(true).optional(),
  strict: z.boolean().optional(),
})

const count = z.int().nonnegative().optional()
const limitsArgs = z.object({ org: z.int().positive(), rpm: count, running: count, keys: count, agents: count, streams: count, reset: z.boolean().optional() })

const contentArgs = z.object({ org: z.int().positive(), request: z.string().min(1).max(200) })

const auditArgs = z.object({ org: z.int().positive().optional(), before: z.int().positive().optional(), limit: z.int().positive().max(1000).optional() })

const probeArgs = z.object({ maxInr: z.number().min(0).max(10_000), maxSeconds: z.int().min(1).max(600), only: z.string().min(1).max(320).optional() })

const releaseArgs = z.object({ process: z.int().positive() })

const maintenanceArgs = z.object({ route: z.string().min(3).max(320).optional(), for: z.string().max(20).optional(), clear: z.boolean().optional() })

/** Returns the function that runs the operator's commands in the process that owns the database. */
export function adminHandler(app: App): AdminHandler {
  return async (command: AdminCommand) => {
    switch (command.name) {
      case 'create':
        return create(app, argsOf(createArgs, command))
      case 'key':
        return makeKey(app, argsOf(keyArgs, command))
      case 'revoke-key':
        return revokeKey(app, argsOf(revokeArgs, command))
      case 'sign-in':
        return signIn(app, argsOf(signInArgs, command))
      case 'budget':
        return setBudget(app, argsOf(budgetArgs, command))
      case 'limits':
        return setOrgLimits(app, argsOf(limitsArgs, command))
      case 'content':
        return readContent(app, argsOf(contentArgs, command))
      case 'audit':
        return listAudit(app, argsOf(auditArgs, command))
      case 'maintenance':
        return maintenance(app, argsOf(maintenanceArgs, command))
      case 'rotate-signing-key':
        return rotateSigningKey(app)
      case 'release':
        return releaseProcess(app, argsOf(releaseArgs, command).process)
      case 'doctor':
        return app.doctor()
      case 'probe-routes':
        return probed(app, argsOf(probeArgs, command))
      default:
        return otherFamilies(app, command)
    }
  }
}

function probed(app: App, { maxInr, maxSeconds, only }: z.output<typeof probeArgs>): Promise<object> {
  return app.probeRoutes({ costMaxUinr: uinrFromInr(maxInr), timeMaxMs: maxSeconds * 1000, only: only ?? null })
}

/** Runs the commands that other files define. */
function otherFamilies(app: App, command: AdminCommand): Promise<object> {
  const answer =
    billingCommand(app, command) ??
    webhookCommand(app, command) ??
    complianceCommand(app, command) ??
    usageCommand(app, command) ??
    doubtCommand(app, command) ??
    masterKeyCommand(app, command) ??
    backupCommand(app, command)
  if (answer === null) throw new Error(`unknown command ${command.name}`)
  return answer
}

function create(app: App, args: z.output<typeof createArgs>): Promise<object> {
  return asOperator(app.audit, { act: 'createOrg', orgId: null, target: null }, () => createOrg(app, args))
}

async function createOrg(app: App, args: z.output<typeof createArgs>): Promise<object> {
  const { orgId, userId } = await app.orgs.createOrg({ name: args.org, ownerEmail: args.email })
  const created = await app.keys.create({ orgId, userId, workspaceId: null, name: 'first key', scope: 'full', ...limitsOf(args) })
  if (args.orgBudgetInr !== undefined) await app.limits.budgets.set(orgId, 'org', String(orgId), uinrFromInr(args.orgBudgetInr))
  if (args.keyBudgetInr !== undefined) await app.limits.budgets.set(orgId, 'key', String(created.id), uinrFromInr(args.keyBudgetInr))
  return { org_id: orgId, user_id: userId, key_id: created.id, key: created.key, base_url: app.baseUrl() }
}

function makeKey(app: App, args: z.output<typeof keyArgs>): Promise<object> {
  return asOperator(app.audit, { act: 'createKey', orgId: args.org, target: null }, () => createKey(app, args))
}

async function createKey(app: App, args: z.output<typeof keyArgs>): Promise<object> {
  const userId = args.email === undefined ? null : await app.orgs.memberId(args.org, args.email)
  const created = await app.keys.create({
    orgId: args.org,
    userId,
    workspaceId: args.workspace ?? null,
    name: args.name,
    scope: args.scope,
    expiresDays: args.expiresDays,
    policies: {
      maxConcurrency: args.maxConcurrency,
      maxOutputTokens: args.maxOutputTokens,
      maxCostUinr: args.maxCostInr === undefined ? null : uinrFromInr(args.maxCostInr),
    },
    ...limitsOf(args),
  })
  if (args.keyBudgetInr !== undefined) await app.limits.budgets.set(args.org, 'key', String(created.id), uinrFromInr(args.keyBudgetInr))
  return { org_id: args.org, key_id: created.id, key: created.key }
}

/** Revokes a key immediately in every process, and ends its running calls. */
async function revokeKey(app: App, args: z.output<typeof revokeArgs>): Promise<object> {
  await asOperator(app.audit, { act: 'revokeKey', orgId: args.org, target: `key=${args.key}` }, () => app.keys.revoke(args.org, args.key))
  return { org_id: args.org, key_id: args.key, revoked: true }
}

/** Makes a link that signs a person in once. */
async function signIn(app: App, args: z.output<typeof signInArgs>): Promise<object> {
  const { url, email, expiresAt } = await app.makeSignInLink(args.email)
  return { url, email, expires_at: expiresAt.toISOString() }
}

async function setBudget(app: App, args: z.output<typeof budgetArgs>): Promise<object> {
  if ((args.inr === undefined) === (args.clear === undefined))
    throw fail('bad_request', {
      message: 'Say --inr with an amount above 0, or --clear for no limit. To stop calls altogether, disable the key or pause the agent.',
    })
  const capUinr = args.inr === undefined ? null : uinrFromInr(args.inr)
  const id = args.id ?? args.org
  const options = { strict: args.strict ?? false }
  await asOperator(app.audit, { act: 'setBudget', orgId: args.org, target: `${args.scope}=${id}` }, async () => {
    if (args.scope === 'agent') await app.agents.budgets.set(args.org, id, capUinr, 'operator', options)
    else await app.limits.budgets.set(args.org, args.scope, String(id), capUinr, options)
  })
  return { org_id: args.org, scope: args.scope, id, monthly_budget_inr: args.inr ?? null }
}

/** Shows the limits of an organisation. Changes them first when limits are given. */
async function setOrgLimits(app: App, { org, reset = false, ...params }: z.output<typeof limitsArgs>): Promise<object> {
  const named = Object.entries(params).filter(([, value]) => value !== undefined)
  if (named.length === 0 && !reset) return { org_id: org, ...(await app.orgLimits.of(org)) }
  const target = [...(reset ? ['reset'] : []), ...named.map(([name, value]) => `${name}=${value}`)].join(' ')
  const made = await asOperator(app.audit, { act: 'setOrgLimits', orgId: org, target }, () => app.orgLimits.set(org, params, reset))
  return { org_id: org, ...made }
}

/** Returns the audit trail of an organisation, newest first. Without an organisation, returns the lines about the installation itself. */
function listAudit(app: App, { org, before, limit }: z.output<typeof auditArgs>): Promise<object> {
  return app.audit.list(org ?? null, { before: before === undefined ? null : BigInt(before) }, limit ?? 100)
}

/** Returns the stored content of one call. The audit line is written before anything is read, even when there is no content. */
async function readContent(app: App, { org, request }: z.output<typeof contentArgs>): Promise<object> {
  const target = `request=${request}`
  const line = await app.audit.begin({ orgId: org, actor: 'operator', act: 'readContent', target, sourceIp: null, requestId: null })
  const found = await app.contentLog.read(org, request)
  await app.audit.end(line, found === null ? 'not_found' : 'ok')
  if (found === null)
    throw new Error(
      `there is no content of request ${request} in organisation ${org}: it keeps none (PUT /me/org/data-retention), the window is over, or the id is wrong`,
    )
  const { requestId, at, keyId, ...rest } = found
  return { request_id: requestId, at: at.toISOString(), key_id: keyId, ...rest }
}

/** Quarantines a route of the platform, releases it, or lists the quarantined routes. */
async function maintenance(app: App, { route, for: span, clear }: z.output<typeof maintenanceArgs>): Promise<object> {
  if (route === undefined) return { withheld: (await app.maintenance.list()).map(withheldView) }
  if ((span === undefined) === (clear !== true)) throw new Error('say either --for <time>, for example --for 10m, or --clear')
  const act = { act: clear === true ? 'clearMaintenance' : 'setMaintenance', orgId: null, target: route }
  if (span === undefined) {
    await asOperator(app.audit, act, () => app.maintenance.clear(route))
    return { route, maintenance: false }
  }
  return withheldView(await asOperator(app.audit, act, () => app.maintenance.withhold(route, spanMs(span), setByOperator)))
}

/** Rotates the key that signs agent tokens. Throws an Error when the next key has not been public for long enough. The error says how long to wait. */
function rotateSigningKey(app: App): Promise<object> {
  return asOperator(app.audit, { act: 'rotateSigningKey', orgId: null, target: null }, async () => {
    const rotation = await app.agents.signingKeys.rotate({ replacesNext: true })
    switch (rotation.kind) {
      case 'rotated':
        return { rotated: true, kid: rotation.kid }
      case 'too_early':
        throw new Error(`the next key has not been public long enough for every verifier to know it: try again in ${minutes(rotation.waitMs)} minutes`)
      case 'next_replaced':
        return {
          rotated: false,
          note: `the next key was sealed under another master key and another one waits in its place: run this again in ${minutes(rotation.waitMs)} minutes`,
        }
      case 'not_due':
        throw new Error('the signing key is not due')
    }
  })
}

const minutes = (ms: number): number => Math.max(1, Math.ceil(ms / 60_000))

const unitMs = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** Returns the milliseconds of a duration such as `90s`, `10m`, `2h` or `1d`. */
function spanMs(text: string): number {
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text.trim()) ?? []
  if (count === undefined || unit === undefined) throw new Error(`for: "${text}" is no time; write 90s, 10m, 2h or 1d`)
  return Number(count) * unitMs[unit as keyof typeof unitMs]
}

function limitsOf(args: { rpm?: number | null | undefined; daily?: number | null | undefined }): { rpmLimit?: number | null; dailyLimit?: number | null } {
  return { ...(args.rpm === undefined ? {} : { rpmLimit: args.rpm }), ...(args.daily === undefined ? {} : { dailyLimit: args.daily }) }
}

/** The operator's commands about attestations. They run in the process that owns the database. */
const checkArgs = z.object({ key_id: z.string().max(200), signature: z.string().max(200), payload: z.string() })

/** Runs a command about attestations and returns its result. Returns null for another command. */
export function complianceCommand(app: App, command: AdminCommand): Promise<object> | null {
  switch (command.name) {
    case 'rotate-attestation-key':
      return rotate(app)
    case 'check-attestation':
      return check(app, argsOf(checkArgs, command))
    default:
      return null
  }
}

function rotate(app: App): Promise<object> {
  return asOperator(app.audit, { act: 'rotateAttestationKey', orgId: null, target: null }, async () => {
    const { keyId, hmacKeyId } = await app.attestations.keys.rotate()
    return { rotated: true, ed25519_key_id: keyId, hmac_key_id: hmacKeyId }
  })
}

async function check(app: App, { key_id: keyId, signature, payload }: z.output<typeof checkArgs>): Promise<object> {
  const isOurs = await app.attestations.keys.checkHmac(keyId, signature, Buffer.from(payload))
  if (isOurs === null) throw new Error(`not valid: this gateway never had an HMAC secret of the id ${keyId}`)
  if (!isOurs) throw new Error('not valid: the HMAC does not belong to this payload')
  return { valid: true, alg: 'HMAC-SHA256', key_id: keyId }
}

/** The operator's commands about the sums of usage. They run in the process that owns the database. */
const rebuildArgs = z.object({ from: z.string().max(40).optional(), to: z.string().max(40).optional() })

/** Runs a command about usage and returns its result. Returns null for another command. */
export function usageCommand(app: App, command: AdminCommand): Promise<object> | null {
  return command.name === 'usage-rebuild' ? rebuild(app, argsOf(rebuildArgs, command)) : null
}

async function rebuild(app: App, { from, to }: z.output<typeof rebuildArgs>): Promise<object> {
  const days = await asOperator(app.audit, { act: 'usage-rebuild', orgId: null, target: null }, () => app.operator.usage.rebuild(from, to))
  return { rebuilt: days.length, days: days.map(({ day, events, summed }) => ({ day, events, summed_before: summed })) }
}
