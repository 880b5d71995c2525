/** `brigade demo --serve`: a gateway of its own with 35 days of made-up data. It serves until it is stopped, and leaves nothing behind. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RunningGateway, startGateway } from '../../../composition/serve.ts'
import { systemClock } from '../../../platform/clock.ts'
import { loadConfig } from '../../../platform/config.ts'
import { endOfIstDayMs, istDay } from '../../../platform/values/ist-time.ts'
import { must } from './demo-client.ts'
import { makeDay } from './world/calls.ts'
import { downModel, downProvider, mailOf, models, orgName, people } from './world/cast.ts'
import { type LocalServers, startLocalServers } from './world/local-servers.ts'
import { type MovedClock, movedClock } from './world/moved-clock.ts'
import { daysBefore, plannedNotes } from './world/notes.ts'
import { makeOrganisation, type Organisation } from './world/organisation.ts'
import { type Seeded, seeded } from './world/seeded.ts'
import { numberOf } from './world/visitor.ts'

/** Days of data, today included. */
const days = 35
const dayMs = 24 * 3600_000
/** Nothing is made within this time before now, so that the clock never goes back. */
const quietMs = 60_000
/** Calls to the provider that is down, so that its circuit opens. */
const callsToDown = 6

/** A demonstration that serves. */
export interface ServedDemo {
  readonly baseUrl: string
  readonly ownerLink: string
  readonly memberLink: string
  readonly calls: number
  readonly objects: number
  stop(): Promise<void>
}

/** Makes the data and serves it. `port` 0 is a free port. `note` is called with a sentence for each step. */
export async function serveDemo({ seed, port }: { readonly seed: number; readonly port: number }, note: (line: string) => void): Promise<ServedDemo> {
  const dataDir = mkdtempSync(join(tmpdir(), 'brigade-demo-'))
  const servers = await startLocalServers()
  const nowMs = systemClock.nowMs()
  const clock = movedClock(daysBefore(days - 1, nowMs) - dayMs / 2)
  let gateway: RunningGateway | null = null
  const stop = async (): Promise<void> => {
    await gateway?.stop()
    await servers.close()
    rmSync(dataDir, { recursive: true, force: true })
  }
  try {
    gateway = await startGateway(loadConfig(settings(dataDir, port, servers)), { clock, flushesHere: true, makesFirstOrg: false })
    const made = await fill(gateway, clock, seeded(seed), nowMs, servers, note)
    return { baseUrl: gateway.baseUrl, ...made, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

function settings(dataDir: string, port: number, { hostPort, url }: LocalServers): Record<string, string> {
  const file = join(dataDir, 'brigade.config.json')
  const ids = [...new Set(models.map(model => model.provider))]
  const providers = ids.map(id => ({
    id,
    base_url: `${url}/up/${id}`,
    auth: 'none',
    residency: must(
      models.find(model => model.provider === id),
      id,
    ).residency,
  }))
  const price = (inputInr: number, outputInr: number) => ({
    input_inr_per_mtok: inputInr,
    output_inr_per_mtok: outputInr,
    source: 'made up for the demonstration',
  })
  const common = { kind: 'chat', context_length: 200_000, tools: true }
  const rows = models.map(({ id, provider, inputInr, outputInr }) => ({ ...common, id, routes: [{ provider, ...price(inputInr, outputInr) }] }))
  const down = { ...common, id: downModel, routes: [downProvider, 'openai'].map(provider => ({ provider, ...price(10, 40) })) }
  const ofDown = { id: downProvider, base_url: `${url}/down`, auth: 'none', residency: 'global' }
  writeFileSync(file, JSON.stringify({ providers: [...providers, ofDown], models: [...rows, down] }))
  return {
    PORT: String(port),
    HOST: '127.0.0.1',
    DATA_DIR: dataDir,
    CONFIG_FILE: file,
    SANDBOX: 'on',
    LOCAL_SERVERS: 'off',
    PRICE_FEED_URL: 'off',
    OUTBOUND_ALLOW: hostPort,
    LOG_LEVEL: 'error',
    // The demonstration makes the work of weeks in seconds.
    CONSOLE_RPM: '100000',
    ANON_RPM: '100000',
    DEFAULT_RPM: '100000',
    // Its sessions began weeks ago, by their clock.
    SESSION_TTL_S: String(2 * days * 86_400),
  }
}

type Made = Omit<ServedDemo, 'baseUrl' | 'stop'>

async function fill(
  gateway: RunningGateway,
  clock: MovedClock,
  random: Seeded,
  nowMs: number,
  servers: LocalServers,
  note: (line: string) => void,
): Promise<Made> {
  const { app, baseUrl } = gateway
  const email = mailOf(must(people[0], 'the cast has an owner').name)
  const { orgId, userId } = await app.orgs.createOrg({ name: orgName, ownerEmail: email })
  await app.memory.useFolder(orgId)
  note('People, keys and agents…')
  const org = await makeOrganisation({ app, baseUrl, orgId, ownerUserId: userId })
  note(`Calls and notes of ${days} days…`)
  const { objects, writes } = plannedNotes(baseUrl, org, random, clock.nowMs(), nowMs - quietMs)
  let calls = 0
  for (let day = 0; day < days; day++) {
    const endOfDay = endOfIstDayMs(daysBefore(days - 1 - day, nowMs))
    const weekday = new Date(`${istDay(endOfDay - 1)}T00:00:00Z`).getUTCDay()
    const span = { day, startMs: endOfDay - dayMs, endMs: Math.min(endOfDay, nowMs - quietMs), isWeekend: weekday === 0 || weekday === 6 }
    calls += await makeDay({ app, clock, random, callers: org.callers, others: writes }, span)
  }
  clock.catchUp()
  note('Budgets, webhooks and a provider that is down…')
  await finish(baseUrl, org, servers)
  const [ownerLink, memberLink] = [await app.makeSignInLink(email), await app.makeSignInLink(org.memberEmail)]
  return { ownerLink: ownerLink.url, memberLink: memberLink.url, calls, objects }
}

/** Sets budgets by what was spent, ends and pauses what the cast says, and lets webhooks and a provider fail. */
async function finish(baseUrl: string, { owner, agents, revokedKeyId }: Organisation, { url }: LocalServers): Promise<void> {
  for (const { id, spentShare, isPaused } of agents) {
    if (spentShare !== undefined) {
      const spentInr = numberOf(await owner('GET', `/me/agents/${id}`), 'spend_month_inr')
      await owner('POST', `/me/agents/${id}/budget`, { monthly_budget_inr: Math.max(1, Math.round((spentInr / spentShare) * 100) / 100) })
    }
    if (isPaused === true) await owner('POST', `/me/agents/${id}/pause`)
  }
  await owner('DELETE', `/me/keys/${revokedKeyId}`)
  for (const kind of ['good', 'down']) {
    const hook = await owner('POST', '/me/webhooks', { url: `${url}/hooks/${kind}`, description: `Chat of the team (${kind})`, subscribe_all: true })
    for (let test = 0; test < 3; test++) await owner('POST', `/me/webhooks/${hook['id']}/test`).catch(() => undefined)
  }
  const key = await owner('POST', '/me/keys', { name: 'Watchdog', scope: 'inference', expires_days: 30 })
  const headers = { authorization: `Bearer ${key['key']}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ model: downModel, messages: [{ role: 'user', content: 'Are you there?' }] })
  for (let call = 0; call < callsToDown; call++) await (await fetch(`${baseUrl}/v1/chat/completions`, { method: 'POST', headers, body })).arrayBuffer()
}
