/** The domains of the gateway, constructed and handed to each other: everything but inference and the edges. */
import { type Agents, createAgents } from './agents/agents.ts'
import type { AppDeps } from './app-deps.ts'
import { usageAccount } from './app-limits.ts'
import { createMail } from './app-mail.ts'
import { createWebhookDelivery } from './app-webhook-delivery.ts'
import { otherMasterKeys } from './boot.ts'
import { Authenticator } from './gateway/access/authenticate.ts'
import { Sessions } from './gateway/access/sessions.ts'
import { AuditTrail } from './gateway/audit/audit.ts'
import { onDebitedOf } from './gateway/billing/low-balance.ts'
import { ContentLog, contentExpiryMs } from './gateway/inference/content-log.ts'
import { Idempotency, onceSweepMs } from './gateway/inference/once.ts'
import { createKeys, type Keys } from './gateway/keys/keys.ts'
import { createLimits, type LimitsEngine } from './gateway/limits/limits.ts'
import type { Mail } from './gateway/mail/mail.ts'
import { type MailSender, mailSweepMs } from './gateway/mail/mail-sender.ts'
import { createOrgs, type Orgs } from './gateway/orgs/orgs.ts'
import { makePartitions, partitionsEveryMs } from './gateway/usage/partitions.ts'
import type { UsageEvent } from './gateway/usage/record.ts'
import { createMemory, type Memory, memorySweepMs } from './memory/memory.ts'
import { purgeEveryMs } from './memory/purge.ts'
import { reconcileEveryMs } from './memory/reconcile.ts'
import { isBilling } from './platform/config.ts'
import { ControlLog } from './platform/db-control-log.ts'
import { Inflight } from './platform/inflight.ts'
import { Jobs } from './platform/jobs.ts'
import { createOutbound, type Outbound } from './platform/outbound.ts'
import { makeSealer, type Sealer } from './platform/secrets.ts'

export interface Domains {
  readonly inflight: Inflight
  readonly outbound: Outbound
  readonly controlLog: ControlLog
  readonly orgs: Orgs
  readonly keys: Keys
  readonly limits: LimitsEngine<UsageEvent>
  readonly agents: Agents
  readonly memory: Memory
  readonly authenticator: Authenticator
  readonly sessions: Sessions
  readonly mail: Mail
  readonly audit: AuditTrail
  readonly sealer: Sealer
  readonly jobs: Jobs
  readonly contentLog: ContentLog
  readonly idempotency: Idempotency
  /** To be called when no call runs any more: flushes, gives leases back, stops timers. */
  stop(): Promise<void>
}

/** Constructs and starts them. The subscriptions to the control log are made first, then it starts, then who depends on its first read. */
export async function createDomains(deps: AppDeps, baseUrl: () => string): Promise<Domains> {
  const { config, clock, ids, log, db, dataDir } = deps
  const { mail, mailSender } = createMail(deps)
  const masterKeys = { masterKey: deps.masterKey, otherMasterKeys: otherMasterKeys(config, dataDir) }
  const sealer = makeSealer(deps.masterKey, masterKeys.otherMasterKeys)
  const inflight = new Inflight()
  const outbound = outboundOf(deps)
  const controlLog = new ControlLog({ db, clock, log, pollMs: config.CONTROL_POLL_MS })
  const cacheTtlMs = config.CACHE_TTL_MS
  const contentLog = new ContentLog({ db, clock, log, sealer, controlLog })
  const audit = new AuditTrail({ db, clock, keepDays: config.AUDIT_KEEP_DAYS })
  const webhooks = createWebhookDelivery(deps, { outbound, sealer, mail, audit, baseUrl })
  const sessions = new Sessions({ db, clock, ids, controlLog, ...masterKeys, ttlSeconds: config.SESSION_TTL_S, cacheTtlMs, baseUrl })
  const orgs = createOrgs({ db, clock, controlLog, cacheTtlMs })
  const formerTrialLimits = { rpmLimit: config.TRIAL_RPM, dailyLimit: config.TRIAL_DAILY }
  const trialLimits = isBilling(config) ? formerTrialLimits : null
  const keys = createKeys({ db, clock, ids, controlLog, cacheTtlMs, defaultRpm: config.DEFAULT_RPM, trialLimits, formerTrialLimits })
  const limits = await createLimits({
    db,
    config,
    clock,
    ids,
    log,
    dataDir,
    controlLog,
    ...usageAccount(ids),
    onDebited: onDebitedOf({ clock, ids, mail, baseUrl }),
    ...(deps.journalDisk ? { disk: deps.journalDisk } : {}),
  })
  const idempotency = new Idempotency({ db, clock, ids, ...masterKeys, processId: () => limits.processId })
  const times = { tokenTtlSeconds: config.AGENT_TOKEN_TTL_S, staleMs: config.AGENT_STALE_MS, cacheTtlMs }
  const agents = createAgents({ db, clock, ids, log, controlLog, inflight, keys, sealer, baseUrl, ...times, budgets: limits.budgets })
  await keys.beginTrials()
  await controlLog.start()
  await agents.start()
  const stopKeyUse = keys.use.start(log)
  await makePartitions(db, clock.nowMs(), log)
  const memory = createMemory({ ...deps, controlLog, sealer, guard: outbound.guard, kind: db.kind, agentByLabel: agents.byLabel.bind(agents) })
  const jobs = regularJobs(deps, memory, contentLog, idempotency, mailSender)
  const stopMail = mailSender.start()
  const stopWebhooks = webhooks.start(jobs)
  const stopWatch = cutWhenOffline(deps, limits, inflight)
  return {
    inflight,
    outbound,
    controlLog,
    orgs,
    keys,
    limits,
    agents,
    memory,
    authenticator: new Authenticator(keys, agents.tokens),
    sessions,
    mail,
    audit,
    sealer,
    jobs,
    contentLog,
    idempotency,
    async stop() {
      stopWatch()
      await jobs.stop()
      await Promise.all([stopMail(), stopWebhooks()])
      await contentLog.stop()
      agents.stop()
      memory.stop()
      await limits.stop()
      await stopKeyUse()
      await controlLog.stop()
      await outbound.close()
    },
  }
}

function outboundOf({ config, lookup }: AppDeps): Outbound {
  return createOutbound({
    connectTimeoutMs: config.CONNECT_TIMEOUT_MS,
    firstByteTimeoutMs: config.FIRST_BYTE_TIMEOUT_MS,
    streamIdleTimeoutMs: config.STREAM_IDLE_TIMEOUT_MS,
    allow: config.OUTBOUND_ALLOW,
    ...(lookup ? { lookup } : {}),
  })
}

/** What is done again and again, by one process at a time. */
function regularJobs({ db, clock, ids, log }: AppDeps, memory: Memory, contentLog: ContentLog, idempotency: Idempotency, mailSender: MailSender): Jobs {
  const jobs = new Jobs({ db, clock, ids, log })
  jobs.every('usage.partitions', partitionsEveryMs, () => makePartitions(db, clock.nowMs(), log))
  jobs.every('memory.sweep', memorySweepMs, async () => {
    await memory.sweep(clock.nowMs())
    await memory.changes.prune()
  })
  jobs.every('memory.purge', purgeEveryMs, async signal => {
    await memory.purge.run(signal)
  })
  jobs.every('memory.reconcile', reconcileEveryMs, signal => memory.reconcile.runDue(signal))
  jobs.every('content.expire', contentExpiryMs, signal => contentLog.expire(signal))
  jobs.every('once.sweep', onceSweepMs, () => idempotency.sweep())
  jobs.every('mail.sweep', mailSweepMs, async () => {
    await mailSender.sweep()
  })
  return jobs
}

/** A clock that was just put forward looks like an outage until the next beat, so an outage must be seen in several looks. */
const offlineLooksMin = 3

/** Ends what runs when the database has been away for OFFLINE_MAX: from then on another process may take this one for dead and adopt its calls. */
function cutWhenOffline({ clock, config }: AppDeps, limits: LimitsEngine<UsageEvent>, inflight: Inflight): () => void {
  let looks = 0
  return clock.every(config.BEAT_MS, () => {
    looks = limits.isOffline ? looks + 1 : 0
    if (looks >= offlineLooksMin) inflight.abortAll('database_away')
  })
}
