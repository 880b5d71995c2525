/** An organisation with monitored collections, and its upstreams, mail server and webhook receiver. */
import { expect } from 'vitest'
import { startApp, type TestApp, type TestReply } from '../../harness/app.ts'
import { type MovableClock, movableClock } from '../../harness/clock.ts'
import { fileWithMedia } from '../../harness/media-models.ts'
import type { RecordedRequest } from '../../harness/upstream-server.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../../harness/webhook-receiver.ts'
import { type OwnServer, startOwnServer } from '../byok/own-server.ts'
import { type MailServer, startMailServer } from '../mail/mail-server.ts'

export interface Watched {
  readonly app: TestApp
  readonly clock: MovableClock
  readonly receiver: WebhookReceiver
  readonly mail: MailServer
  readonly own: OwnServer
  readonly owner: string
  readonly member: { readonly cookie: string; readonly email: string }
  readonly admin: { readonly cookie: string; readonly email: string }
  /** Makes a collection and returns its slug and id. */
  make(steps: readonly unknown[], model?: string, more?: object): Promise<{ slug: string; id: number }>
  on(slug: string, monitored?: unknown): Promise<TestReply>
  /** Requests a round, after the pause that two rounds of the same collection need. */
  check(slug: string): Promise<TestReply>
  health(slug: string, query?: string): Promise<TestReply>
  addAlert(slug: string, alert: object, cookie?: string): Promise<TestReply>
  /** Returns the canaries among the requests that the upstreams received since the last reset. */
  canaries(): RecordedRequest[]
  /** Sets whether a canary that hangs is given up immediately. */
  impatient(params: boolean): void
  reset(): void
  /** Deletes every collection of the organisation. */
  clear(): Promise<void>
  stop(): Promise<void>
}

const timeoutMs = 2000
export const collectionsMax = 40
export const cooldownS = 3600
const everyS = 9
/** The interval at which the worker looks for due rounds with this pause. */
const lookMs = 900
/** Longer than the minimum age of a round, and long enough that an organisation never reaches its limit of requested rounds. */
const betweenChecksMs = 21_000

export async function startWatched(): Promise<Watched> {
  const timed = movableClock()
  const clock: MovableClock = {
    ...timed,
    // The worker looks for due rounds more often here. A canary that hangs is given up sooner when a test asks for this.
    every: (ms, work) => timed.every(ms === lookMs ? 50 : ms, work),
    after: (ms, work) => timed.after(isImpatient && ms === timeoutMs ? 50 : ms, work),
  }
  let isImpatient = false
  const [receiver, mail, own] = await Promise.all([startWebhookReceiver(), startMailServer(), startOwnServer()])
  own.behave()
  const app = await startApp({
    clock,
    operatorFile: fileWithMedia,
    env: {
      OUTBOUND_ALLOW: `${receiver.hostPort},${own.hostPort}`,
      WEBHOOK_POLL_MS: '20',
      SMTP_URL: mail.url,
      MAIL_POLL_MS: '20',
      MONITOR_TIMEOUT_S: String(timeoutMs / 1000),
      // The session must survive, because tests move the clock by months.
      SESSION_TTL_S: String(400 * 86_400),
      CONSOLE_RPM: '1000000',
      ANON_RPM: '1000000',
      COLLECTIONS_MAX: String(collectionsMax),
      MONITORED_MAX: '3',
      MONITOR_EVERY_S: String(everyS),
      CANARIES_ORG_MAX: '100',
      CANARIES_MAX: '101',
      ALERTS_MAX: '3',
      ALERT_COOLDOWN_S: String(cooldownS),
      ALERT_WINDOW_S: '120',
    },
  })
  const owner = await app.signIn()
  const [member, admin] = [await app.newMember('member'), await app.newMember('admin')]
  let made = 0
  const upstreams = [app.alpha, app.beta, app.indus]
  const watched: Watched = {
    app,
    clock,
    receiver,
    mail,
    own,
    owner,
    member,
    admin,
    async make(steps, model = 'test-model', more = {}) {
      made++
      const reply = await app.call('POST', '/me/collections', { name: `Watched ${made}`, model, steps, ...more }, { cookie: owner })
      expect(reply.status, reply.text).toBe(201)
      return { slug: reply.json.slug, id: reply.json.id }
    },
    on: (slug, monitored = true) => app.call('POST', `/me/collections/${slug}/monitor`, { monitored }, { cookie: owner }),
    async check(slug) {
      clock.advance(betweenChecksMs)
      const reply = await app.call('POST', `/me/collections/${slug}/check`, undefined, { cookie: owner })
      expect([reply.status, reply.json.checked], reply.text).toEqual([200, true])
      return reply
    },
    health: (slug, query = '') => app.call('GET', `/me/collections/${slug}/health${query}`, undefined, { cookie: owner }),
    addAlert: (slug, alert, cookie = owner) => app.call('POST', `/me/collections/${slug}/alerts`, alert, { cookie }),
    canaries: () => upstreams.flatMap(({ requests }) => requests),
    impatient(params) {
      isImpatient = params
    },
    reset() {
      for (const upstream of upstreams) upstream.reset()
      receiver.forget()
      mail.received.length = 0
    },
    async clear() {
      const { collections } = (await app.call('GET', '/me/collections', undefined, { cookie: owner })).json
      for (const { id } of collections) await app.call('DELETE', `/me/collections/${id}`, undefined, { cookie: owner })
    },
    async stop() {
      await app.stop()
      await Promise.all([receiver.close(), mail.close(), own.close()])
    },
  }
  return watched
}
