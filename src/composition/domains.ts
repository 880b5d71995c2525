/** Constructs the domains of the gateway and connects them. Inference and the edges are constructed elsewhere. */
import { type Agents, createAgents } from '../agents/agents.ts'
import { Authenticator } from '../gateway/access/authenticate.ts'
import { Sessions } from '../gateway/access/sessions.ts'
import { AuditTrail } from '../gateway/audit/audit.ts'
import { onDebitedOf } from '../gateway/billing/low-balance.ts'
import { ContentLog, contentExpiryMs } from '../gateway/inference/content-log/content-log.ts'
import { Idempotency, onceSweepMs } from '../gateway/inference/idempotency/idempotency.ts'
import { ReplyCache, replyCacheSweepMs } from '../gateway/inference/reply-cache/reply-cache.ts'
import { createKeys, type Keys } from '../gateway/keys/keys.ts'
import { createLimits, type LimitsEngine } from '../gateway/limits/engine/limits.ts'
import { OrgLimits } from '../gateway/limits/org-limits.ts'
import { RunCounters } from '../gateway/limits/runs/run-counters.ts'
import { createMail } from '../gateway/mail/create-mail.ts'
import type { Mail } from '../gateway/mail/mail.ts'
import { type MailSender, mailSweepMs } from '../gateway/mail/mail-sender.ts'
import { Founders } from '../gateway/orgs/founders.ts'
import { OrgDisplay } from '../gateway/orgs/org-display.ts'
import { createOrgs, type Orgs } from '../gateway/orgs/orgs.ts'
import { makePartitions, partitionsEveryMs } from '../gateway/usage/events/partitions.ts'
import type { UsageEvent } from '../gateway/usage/events/record.ts'
import { RefusedCalls } from '../gateway/usage/refusals/refused-calls.ts'
import { CappedRuns } from '../gateway/usage/runs/caps/capped-runs.ts'
import { EndedRuns } from '../gateway/usage/runs/ended-runs.ts'
import { RunLoops } from '../gateway/usage/runs/loops/run-loops.ts'
import type { WebhookServices } from '../gateway/webhooks/create-webhooks.ts'
import { createMemory, type Memory, memorySweepMs } from '../memory/memory.ts'
import { purgeEveryMs } from '../memory/upkeep/purge.ts'
import { reconcileEveryMs } from '../memory/upkeep/reconcile.ts'
import { isBilling } from '../platform/config.ts'
import { ControlLog } from '../platform/db/db-control-log.ts'
import { Jobs } from '../platform/db/jobs.ts'
import { HeavyTurns } from '../platform/loop/heavy-turns.ts'
import { Inflight } from '../platform/loop/inflight.ts'
import type { HeldReplies } from '../platform/outbound/held-replies.ts'
import type { Outbound } from '../platform/outbound/outbound.ts'
import { AddressTests } from '../platform/security/address-tests.ts'
import { makeSealer, type Sealer } from '../platform/security/secrets.ts'
import { heldReplies } from './bounds.ts'
import type { AppDeps } from './deps.ts'
import { displayRates } from './display-rates.ts'
import { webhookServices } from './domains/webhooks.ts'
import { flushThreadOf } from './flush-thread/flush-thread-of.ts'
import { otherMasterKeys } from './foundation.ts'
import { usageAccount } from './usage-account.ts'

export interface Domains extends Pick<WebhookServices, 'webhooks' | 'webhookDeliveries' | 'followDeliveries'> {
  readonly inflight: Inflight
  readonly outbound: Outbound
  readonly controlLog: ControlLog
  readonly orgs: Orgs
  readonly orgDisplay: OrgDisplay
  readonly founders: Founders
  readonly heldReplies: HeldReplies
  readonly heavyTurns: HeavyTurns
  readonly keys: Keys
  readonly limits: LimitsEngine<UsageEvent>
  readonly orgLimits: OrgLimits
  readonly agents: Agents
  readonly endedRuns: EndedRuns
  readonly refusedCalls: RefusedCalls
  readonly cappedRuns: CappedRuns
  readonly runLoops: RunLoops
  readonly memory: Memory
  readonly addressTests: AddressTests
  readonly authenticator: Authenticator
  readonly sessions: Sessions
  readonly mail: Mail
  readonly audit: AuditTrail
  readonly sealer: Sealer
  readonly jobs: Jobs
  readonly contentLog: ContentLog
  readonly replyCache: ReplyCache
  readonly idempotency: Idempotency
  /** Must be called after the last call has ended. Flushes usage, returns leases, and stops timers. */
  stop(): Promise<void>
}

function keysOf({ db, clock, ids, config }: AppDeps, { controlLog, orgLimits, founders }: Pick<Domains, 'controlLog' | 'orgLimits' | 'founders'>): Keys {
  const formerTrialLimits = { rpmLimit: config.TRIAL_RPM, dailyLimit: config.TRIAL_DAILY }
  const trialLimits = isBilling(config) ? formerTrialLimits : null
  const bounds = { defaultRpm: config.DEFAULT_RPM, trialLimits, formerTrialLimits, allowOneMore: orgLimits.allowing('keys') }
  return createKeys({ db, clock, ids, controlLog, founders, cacheTtlMs: config.CACHE_TTL_MS, ...bounds })
}

function orgPartsOf({ db, clock, config }: AppDeps, controlLog: ControlLog): Pick<Domains, 'orgs' | 'orgDisplay'> {
  const orgs = createOrgs({ db, clock, controlLog, cacheTtlMs: config.CACHE_TTL_MS })
  return { orgs, orgDisplay: new OrgDisplay({ orgs, rates: displayRates(config) }) }
}

/** Returns the founders of organisations, and the parts of this process that all organisations share. */
function sharedParts({ db, clock, config }: AppDeps): Pick<Domains, 'founders' | 'heldReplies' | 'heavyTurns' | 'addressTests' | 'refusedCalls'> {
  const founders = new Founders({ db, clock })
  const { known } = founders
  const ofProcess = { heldReplies: heldReplies(config, known), heavyTurns: new HeavyTurns(clock, known) }
  return { founders, ...ofProcess, addressTests: new AddressTests(clock), refusedCalls: new RefusedCalls(db, clock) }
}

/**
 * Constructs and starts the domains in three steps. First, the domains subscribe to the control log. Then the control log starts. Last, the domains
 * start that depend on its first read.
 */
export async function createDomains(deps: AppDeps & { readonly outbound: Outbound }, baseUrl: () => string): Promise<Domains> {
  const { config, clock, ids, log, db, dataDir, outbound } = deps
  const { mail, mailSender } = createMail(deps)
  const masterKeys = { masterKey: deps.masterKey, otherMasterKeys: otherMasterKeys(config, dataDir) }
  const sealer = makeSealer(deps.masterKey, masterKeys.otherMasterKeys)
  const inflight = new Inflight()
  const controlLog = new ControlLog({ db, clock, log, pollMs: config.CONTROL_POLL_MS })
  const cacheTtlMs = config.CACHE_TTL_MS
  const shared = sharedParts(deps)
  const { founders } = shared
  const content = contentParts(deps, { sealer, controlLog, founders })
  const audit = new AuditTrail({ db, clock, keepDays: config.AUDIT_KEEP_DAYS })
  const webhooks = webhookServices({ ...deps, sealer, mail, audit, addressTests: shared.addressTests, baseUrl })
  const signIns = { ttlSeconds: config.SESSION_TTL_S, operatorEmails: config.OPERATOR_EMAILS, baseUrl }
  const sessions = new Sessions({ db, clock, ids, controlLog, founders, ...masterKeys, cacheTtlMs, ...signIns })
  const orgParts = orgPartsOf(deps, controlLog)
  const orgLimits = new OrgLimits({ db, clock, config, controlLog })
  const keys = keysOf(deps, { controlLog, orgLimits, founders })
  const onDebited = onDebitedOf({ clock, ids, mail, baseUrl })
  const journal = { ...(deps.journalDisk ? { disk: deps.journalDisk } : {}), ...(deps.flushesHere ? {} : flushThreadOf(deps, baseUrl)) }
  const ofOrgs = { orgLimits, founderNumberOf: founders.numberOf.bind(founders) }
  const limits = await createLimits({ ...ofOrgs, db, config, clock, ids, log, dataDir, controlLog, ...usageAccount(ids), onDebited, ...journal })
  const onceParts = { founderOf: founders.known, heavyTurns: shared.heavyTurns, processId: () => limits.processId }
  const idempotency = new Idempotency({ db, clock, ids, ...masterKeys, ...onceParts })
  const times = { tokenTtlSeconds: config.AGENT_TOKEN_TTL_S, staleMs: config.AGENT_STALE_MS, cacheTtlMs }
  const familyBounds = { playgroundBudgetInr: config.PLAYGROUND_BUDGET_INR, budgets: limits.budgets, allowOneMore: orgLimits.allowing('agents') }
  const agents = createAgents({ db, clock, ids, log, controlLog, inflight, keys, sealer, baseUrl, ...times, ...familyBounds })
  const runs = runsOf(deps, { controlLog, inflight, limits })
  await keys.beginTrials()
  await controlLog.start()
  await Promise.all([agents.start(), runs.endedRuns.start(), runs.cappedRuns.start()])
  const stopCounts = [keys.use.start(log), shared.refusedCalls.start(log)]
  await makePartitions(db, clock.nowMs(), log)
  const memory = memoryOf(deps, shared, { controlLog, sealer, agents })
  const jobs = regularJobs(deps, memory, content, idempotency, mailSender)
  const stopMail = mailSender.start()
  const stopWebhooks = webhooks.start(jobs)
  const stopWatch = cutWhenOffline(deps, limits, inflight)
  return {
    inflight,
    outbound,
    controlLog,
    ...orgParts,
    ...shared,
    keys,
    limits,
    orgLimits,
    agents,
    ...runs,
    memory,
    authenticator: new Authenticator(keys, agents.tokens),
    sessions,
    mail,
    webhooks: webhooks.webhooks,
    webhookDeliveries: webhooks.webhookDeliveries,
    followDeliveries: webhooks.followDeliveries,
    audit,
    sealer,
    jobs,
    ...content,
    idempotency,
    async stop() {
      stopWatch()
      await jobs.stop()
      await Promise.all([stopMail(), stopWebhooks()])
      await content.contentLog.stop()
      agents.stop()
      memory.stop()
      await limits.stop()
      await Promise.all(stopCounts.map(stop => stop()))
      await controlLog.stop()
    },
  }
}

/** Constructs what keeps content of calls, for organisations with a retention window. */
function contentParts(
  { db, clock, log, masterKey }: AppDeps,
  { sealer, controlLog, founders }: Pick<Domains, 'sealer' | 'controlLog' | 'founders'>,
): Pick<Domains, 'contentLog' | 'replyCache'> {
  const shared = { db, clock, log, sealer, controlLog, founderOf: founders.known }
  return { contentLog: new ContentLog(shared), replyCache: new ReplyCache({ ...shared, masterKey }) }
}

/** Constructs what every process knows about runs. */
function runsOf({ db, ids, log, clock }: AppDeps, { controlLog, inflight, limits }: Pick<Domains, 'controlLog' | 'inflight' | 'limits'>) {
  const cappedRuns = new CappedRuns({ db, log, controlLog, counters: new RunCounters(ids), nowMs: () => limits.nowMs() })
  limits.onRunsUnknown = () => cappedRuns.forget()
  return { endedRuns: new EndedRuns({ db, log, controlLog, inflight }), cappedRuns, runLoops: new RunLoops({ db, log, clock }) }
}

/** Opens the shared memory of all organisations. */
function memoryOf(
  deps: AppDeps & { readonly outbound: Outbound },
  shared: ReturnType<typeof sharedParts>,
  { agents, ...parts }: Pick<Domains, 'controlLog' | 'sealer' | 'agents'>,
): Domains['memory'] {
  return createMemory({
    ...deps,
    ...shared,
    ...parts,
    founderOf: shared.founders.known,
    guard: deps.outbound.guard,
    kind: deps.db.kind,
    agentByLabel: agents.byLabel.bind(agents),
  })
}

/** Registers the regular jobs. Only one process runs each of them at a time. */
function regularJobs(
  { db, clock, ids, log }: AppDeps,
  memory: Memory,
  { contentLog, replyCache }: Pick<Domains, 'contentLog' | 'replyCache'>,
  idempotency: Idempotency,
  mailSender: MailSender,
): Jobs {
  const jobs = new Jobs({ db, clock, ids, log })
  jobs.every('usage.partitions', partitionsEveryMs, () => makePartitions(db, clock.nowMs(), log))
  jobs.every('memory.changes', memorySweepMs, async () => {
    await memory.changes.prune()
  })
  const sweepMemory = async (): Promise<void> => {
    await memory.sweep(clock.nowMs())
  }
  const purgeMemory = async (signal: AbortSignal): Promise<void> => {
    await memory.purge.run(signal)
  }
  jobs.every('memory.sweep', memorySweepMs, sweepMemory, 'stores')
  jobs.every('memory.purge', purgeEveryMs, purgeMemory, 'stores')
  jobs.every('memory.reconcile', reconcileEveryMs, signal => memory.reconcile.runDue(signal), 'stores')
  jobs.every('content.expire', contentExpiryMs, signal => contentLog.expire(signal))
  jobs.every('replies.expire', replyCacheSweepMs, signal => replyCache.expire(signal))
  jobs.every('once.sweep', onceSweepMs, () => idempotency.sweep())
  jobs.every('mail.sweep', mailSweepMs, async () => {
    await mailSender.sweep()
  })
  return jobs
}

/**
 * The number of consecutive checks that must see an outage. One check is not enough: after the clock was moved forward, the database looks
 * unavailable until the next beat.
 */
const offlineLooksMin = 3

/**
 * Ends all running calls when the database has been unavailable for OFFLINE_MAX. After that time, another process may assume that this process is
 * dead and adopt its calls.
 */
function cutWhenOffline({ clock, config }: AppDeps, limits: LimitsEngine<UsageEvent>, inflight: Inflight): () => void {
  let looks = 0
  return clock.every(config.BEAT_MS, () => {
    looks = limits.isOffline ? looks + 1 : 0
    if (looks >= offlineLooksMin) inflight.abortAll('database_away')
  })
}
