/** Canaries that hang: how many of a process's slots one founder's organisations can take, and that other founders still get some. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startApp, type TestApp, type TestReply } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'
import { until } from '../../harness/until.ts'

const clock = movableClock()
/** More collections than a process has places for rounds. */
const watchedByOne = 270
const everyS = 300
/** Maximum number of concurrent canaries of one founder (canary-worker.ts). */
const concurrentMax = 10
const hanging = { provider: 'alpha' }
/** Four steps, all of which hang. */
const hangingSteps = ['test-model', 'alpha-only', 'same-id', 'global-only'].map(model => ({ model, ...hanging }))

let app: TestApp
beforeAll(async () => {
  app = await startApp({
    clock,
    env: {
      MONITOR_EVERY_S: String(everyS),
      MONITOR_TIMEOUT_S: '3600',
      MONITORED_MAX: String(watchedByOne),
      COLLECTIONS_MAX: String(watchedByOne),
      CONSOLE_RPM: '1000000',
    },
  })
})
afterAll(() => app.stop())
beforeEach(() => {
  for (const upstream of [app.alpha, app.beta]) upstream.reset()
})

/** Makes a person with an organisation, and returns the person's cookie. */
async function founder(name: string): Promise<string> {
  const { userId, orgId } = await app.otherOrg(name)
  return app.signIn(userId, orgId)
}

/** Makes another organisation of the person, and moves the person's session to it. */
async function oneMoreOf(name: string, cookie: string): Promise<void> {
  const made = await app.call('POST', '/me/orgs', { name }, { cookie })
  expect((await app.call('POST', '/me/orgs/switch', { org_id: made.json.id }, { cookie })).status).toBe(200)
}

async function make(name: string, steps: readonly object[], cookie: string): Promise<string> {
  const made = await app.call('POST', '/me/collections', { name, model: 'test-model', steps }, { cookie })
  expect(made.status, made.text).toBe(201)
  return made.json.slug
}

const check = (slug: string, cookie: string): Promise<TestReply> => app.call('POST', `/me/collections/${slug}/check`, undefined, { cookie })

test('HARD-11 organisations of one person share the concurrent canaries of one founder, and canaries of another founder run at the same time', async () => {
  const { userId, orgId } = await app.otherOrg('First')
  const first = await app.signIn(userId, orgId)
  const second = await app.signIn(userId, orgId)
  await oneMoreOf('Second', second)
  const stranger = await founder('Stranger')
  const slugs = []
  for (const cookie of [first, first, second, second]) slugs.push({ cookie, slug: await make(`Hangs ${slugs.length}`, hangingSteps, cookie) })
  const theirs = await make('Answers', [{ model: 'test-model', provider: 'beta' }], stranger)
  app.alpha.script(() => ({ hold: true }))
  const checks = slugs.map(({ slug, cookie }) => check(slug, cookie))
  await until(() => app.alpha.requests.length >= concurrentMax, 'the canaries of the founder run')
  const answered = await check(theirs, stranger)
  expect([answered.json.checked, answered.json.health[0].state, app.beta.requests.length]).toEqual([true, 'ok', 1])
  expect(app.alpha.requests).toHaveLength(concurrentMax)
  // The waiting canaries are sent as soon as the running ones are answered.
  app.alpha.script(() => ({}))
  app.alpha.release()
  for (const { json } of await Promise.all(checks))
    expect([json.checked, json.health.map((step: { state: string }) => step.state)]).toEqual([true, Array(4).fill('ok')])
  expect(app.alpha.requests).toHaveLength(16)
})

test('HARD-11 when rounds of one founder hang, rounds of other founders still run', async () => {
  const hog = await founder('Hog')
  const stranger = await founder('Neighbour')
  const watch = async (name: string, steps: readonly object[], cookie: string): Promise<void> => {
    const slug = await make(name, steps, cookie)
    expect((await app.call('POST', `/me/collections/${slug}/monitor`, { monitored: true }, { cookie })).status).toBe(200)
  }
  app.alpha.script(() => ({ hang: true }))
  for (let count = 0; count < watchedByOne; count++) await watch(`Hog ${count}`, [{ model: 'test-model', ...hanging }], hog)
  await watch('Neighbour', [{ model: 'test-model', provider: 'beta' }], stranger)
  await until(() => app.beta.requests.length === 1, 'the first round of the neighbour')
  for (let rounds = 2; rounds <= 3; rounds++) {
    clock.advance(everyS * 1_200)
    await until(() => app.beta.requests.length === rounds, `round ${rounds} of the neighbour`)
  }
  expect(app.logLines.some(line => line.includes('canaries_left_out'))).toBe(true)
}, 120_000)
