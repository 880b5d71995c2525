import type { SigningKeys } from '../../agents/tokens/signing-keys.ts'
import type { OperatorServices } from '../../composition/edges/operator.ts'
import { readIssuers } from '../../gateway/access/identity/issuer-file.ts'
import { checkBatchInvariants } from '../../gateway/batches/create-batches.ts'
import type { Catalog } from '../../gateway/catalog/catalog.ts'
import type { Identities } from '../../gateway/cloud/identities.ts'
import type { AttestationKeys } from '../../gateway/compliance/attestation/attestation-keys.ts'
import { checkInvariants } from '../../gateway/limits/invariants.ts'
import type { Recovery } from '../../gateway/limits/journal/recovery.ts'
import type { Mail } from '../../gateway/mail/mail.ts'
import type { PlatformKeys } from '../../gateway/operator/platform-keys.ts'
import type { Memory } from '../../memory/memory.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Config } from '../../platform/config.ts'
import type { Db } from '../../platform/db/db.ts'
import type { ControlLog } from '../../platform/db/db-control-log.ts'
import { migrationsFolder, pendingMigrations } from '../../platform/db/migrate.ts'
import { counted } from '../../platform/observe/terminal/counted.ts'
import { inrFromUinr } from '../../platform/values/money.ts'
import type { MasterKeys } from '../master-keys.ts'
import { checkBilling } from './billing.ts'
import type { Finding } from './finding.ts'
import { checkIdentities } from './identities.ts'
import { checkMasterKey } from './master-key.ts'
import { checkProviderKeys } from './provider-keys.ts'
import { checkProviders } from './providers.ts'
import { unknownSettings } from './unknown-settings.ts'

interface DoctorDeps {
  readonly db: Db
  readonly config: Config
  readonly catalog: Catalog
  readonly memory: Memory
  readonly controlLog: ControlLog
  readonly mail: Mail
  readonly signingKeys: Pick<SigningKeys, 'isOpened'>
  readonly attestationKeys: Pick<AttestationKeys, 'isOpened'>
  readonly recovery: Pick<Recovery, 'silent' | 'parked'>
  readonly operator: Pick<OperatorServices, 'payments' | 'webhooks' | 'usage'>
  readonly masterKeys: Pick<MasterKeys, 'status'>
  readonly providerKeys: Pick<PlatformKeys, 'look'>
  readonly identities: Pick<Identities, 'of'>
  readonly clock: Clock
  readonly baseUrl: string
}

/** Runs all checks of a running gateway and returns the findings. */
export async function diagnose(deps: DoctorDeps): Promise<Finding[]> {
  // Providers may take seconds, so the requests run while the other checks do. They never reject.
  const keysTried = checkProviderKeys(deps.providerKeys)
  const identitiesTried = checkIdentities(deps.catalog.snapshot, deps)
  return [
    ...configuration(deps),
    ...signIn(deps),
    ...(await database(deps)),
    ...(await checkMasterKey(deps)),
    ...(await attestationKey(deps)),
    ...(await money(deps)),
    ...(await checkBilling(deps)),
    await checkUsageSums(deps),
    ...(await inDoubt(deps)),
    ...(await refused(deps)),
    ...checkProviders(deps.catalog.snapshot, deps.config),
    ...(await keysTried),
    ...(await identitiesTried),
    ...(await outbox(deps)),
    ...(await stores(deps)),
  ]
}

function configuration({ config, catalog }: DoctorDeps): Finding[] {
  const unknown = unknownSettings(config, catalog.snapshot)
  const findings: Finding[] =
    unknown.length === 0
      ? [{ what: 'configuration', state: 'ok', detail: 'every setting was read' }]
      : unknown.map(detail => ({ what: 'configuration', state: 'warning', detail }))
  const isOpen = config.HOST !== '127.0.0.1' && config.HOST !== 'localhost' && config.HOST !== '::1'
  if (isOpen && config.BASE_URL === null)
    findings.push({
      what: 'BASE_URL',
      state: 'warning',
      detail: `HOST is ${config.HOST}, so agents reach this gateway by another name than it knows. Set BASE_URL: tokens carry it.`,
    })
  if (isOpen && config.BASE_URL?.startsWith('http:'))
    findings.push({ what: 'BASE_URL', state: 'warning', detail: 'credentials travel in plain text over http; put TLS in front' })
  return findings
}

/** Checks the ways to sign in. A provider with only one of its two credentials is a mistake. Having no provider is a valid choice. */
function signIn({ config }: DoctorDeps): Finding[] {
  const given = [
    { name: 'google', id: config.GOOGLE_CLIENT_ID, secret: config.GOOGLE_CLIENT_SECRET },
    { name: 'github', id: config.GITHUB_CLIENT_ID, secret: config.GITHUB_CLIENT_SECRET },
  ]
  const halves = given.filter(({ id, secret }) => (id === null) !== (secret === null))
  const whole = given.filter(({ id, secret }) => id !== null && secret !== null).map(({ name }) => name)
  return [
    { what: 'sign-in', state: 'ok', detail: [...whole, ...readIssuers(config).map(({ id }) => id), 'one-time links (brigade admin sign-in)'].join(', ') },
    ...halves.map(({ name }) => ({
      what: `sign-in with ${name}`,
      state: 'warning' as const,
      detail: `only one of ${name.toUpperCase()}_CLIENT_ID and ${name.toUpperCase()}_CLIENT_SECRET is set, so it is not offered`,
    })),
  ]
}

async function database({ db, controlLog }: DoctorDeps): Promise<Finding[]> {
  const kind = db.kind === 'embedded' ? 'embedded' : 'PostgreSQL'
  const pending = await pendingMigrations(db, migrationsFolder)
  let heard = false
  const stop = await db.listen('br_doctor', () => {
    heard = true
  })
  await db.notify('br_doctor', 'hello')
  for (let waits = 0; waits < 40 && !heard; waits++) await db.notify('br_doctor', 'hello')
  await stop()
  return [
    pending.length === 0
      ? { what: 'database', state: 'ok', detail: `${kind} answers and has the schema of this version` }
      : { what: 'database', state: 'wrong', detail: `${kind} lacks ${pending.join(', ')}: run brigade migrate` },
    heard
      ? { what: 'notifications', state: 'ok', detail: 'LISTEN and NOTIFY arrive' }
      : {
          what: 'notifications',
          state: 'wrong',
          detail:
            'NOTIFY does not arrive. A pooler in transaction mode does that: give DATABASE_URL a direct connection. Until then revokes take the poll (1 s).',
        },
    { what: 'control log', state: controlLog.lastSyncAgeMs() < 5000 ? 'ok' : 'wrong', detail: `last read ${Math.round(controlLog.lastSyncAgeMs())} ms ago` },
  ]
}

/** Checks whether the attestation key can be opened. Returns a finding only when it cannot, because the check of the master key covers the normal case. */
async function attestationKey({ attestationKeys }: DoctorDeps): Promise<Finding[]> {
  if (await attestationKeys.isOpened()) return []
  const detail =
    'was sealed under another master key, so no attestation can be signed. Put the old one back, or run brigade admin rotate-attestation-key; what was signed before stays valid.'
  return [{ what: 'key of attestations', state: 'wrong', detail }]
}

async function money({ db }: DoctorDeps): Promise<Finding[]> {
  const violations = [...(await checkInvariants(db)), ...(await checkBatchInvariants(db))]
  if (violations.length === 0) return [{ what: 'money', state: 'ok', detail: 'leases, spend and ledger add up' }]
  return violations.map(detail => ({ what: 'money', state: 'wrong' as const, detail }))
}

/** Reports processes that died and whose disk is missing. Their holds stay counted until the disk is back or the operator releases them. */
async function inDoubt({ recovery }: DoctorDeps): Promise<Finding[]> {
  const silent = await recovery.silent()
  if (silent.length === 0) return [{ what: 'processes', state: 'ok', detail: 'none is in doubt' }]
  return silent.map(({ id, journal, silentSeconds, counters, mostUinr }) => ({
    what: `process ${id}`,
    state: 'warning' as const,
    detail: `was last seen ${silentSeconds} s ago and holds parts of budgets and limits (${counters}${mostUinr > 0n ? `, at most ₹${inrFromUinr(mostUinr)} of one` : ''}), which nobody else may use. Its journal is in ${journal}: start a process on that folder. If the disk is lost for good: brigade doctor --release ${id}`,
  }))
}

/** Reports usage records that the database refused. The records are kept, but their money is in no budget and no report. */
async function refused({ recovery }: DoctorDeps): Promise<Finding[]> {
  const { records, valueUinr, reason } = await recovery.parked()
  if (records === 0) return [{ what: 'usage records', state: 'ok', detail: 'the database took all of them' }]
  const detail = `${counted(records, 'record was', 'records were')} refused by the database and kept in the table parked_records: ₹${inrFromUinr(valueUinr)} that no budget and no report has. The last reason: ${reason ?? 'unknown'}. brigade admin parked list shows them; apply or discard each`
  return [{ what: 'usage records', state: 'wrong', detail }]
}

/** Reports mail that waits because no mail server is configured, and mail that was given up. */
async function outbox({ mail, config }: DoctorDeps): Promise<Finding[]> {
  const { waiting, failed } = await mail.counts()
  const findings: Finding[] = []
  if (config.SMTP_URL === null && waiting > 0)
    findings.push({ what: 'mail', state: 'warning', detail: `${counted(waiting, 'mail waits', 'mails wait')} to be sent: set SMTP_URL` })
  if (failed > 0)
    findings.push({
      what: 'mail',
      state: 'warning',
      detail: `${counted(failed, 'mail')} could not be sent in the last 90 days; the table emails says why in last_error`,
    })
  return findings.length > 0
    ? findings
    : [{ what: 'mail', state: 'ok', detail: config.SMTP_URL === null ? 'no mail waits. Brigade sends mail when SMTP_URL is set' : 'is sent' }]
}

async function stores({ memory }: DoctorDeps): Promise<Finding[]> {
  const checked = await memory.checkStores()
  if (checked.length === 0) return [{ what: 'memory stores', state: 'ok', detail: 'none is configured' }]
  return checked.map(({ orgId, problem }) => ({
    what: `memory store of organisation ${orgId}`,
    state: problem === null ? ('ok' as const) : ('wrong' as const),
    detail: problem ?? 'answers',
  }))
}

/** Number of days that are checked: today and yesterday. So records that a process of an earlier version wrote on these days are found immediately. */
const daysChecked = 2

/** Checks whether the sums in reports agree with the events. */
export async function checkUsageSums({ operator }: { readonly operator: Pick<OperatorServices, 'usage'> }): Promise<Finding> {
  const wrong = await operator.usage.disagreements(daysChecked)
  if (wrong.length === 0) return { what: 'usage sums', state: 'ok', detail: 'agree with the events of today and yesterday' }
  const days = wrong.map(({ day, events, summed }) => `${day} (${counted(events, 'event')}, ${summed} summed)`).join(', ')
  return {
    what: 'usage sums',
    state: 'wrong',
    detail: `do not agree with the events on ${days}: a process of an earlier version has written there. When none runs any more: npx brigade admin usage rebuild`,
  }
}
