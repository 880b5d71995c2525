import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { builtConsole, type ConsolePage, openPage, program, settled, startBrowser, suiteName } from './browser.ts'

/** Names that only one of the organisations has. Every object of an organisation contains its name. */
const marks = ['Quartz', 'Basalt'] as const
type Mark = (typeof marks)[number]

interface Person {
  readonly mark: Mark
  readonly role: 'owner' | 'admin' | 'member'
  readonly cookie: string
}

/** The order of a person's pages. They are those of the navigation, whatever they are, and one of each object. */
interface Visit {
  readonly path: string
  readonly isOther?: boolean
}

describe.skipIf(program === null)(suiteName('two organisations in the console'), { timeout: 400_000 }, () => {
  let app: TestApp
  let browser: Browser
  const people: Person[] = []
  const agents = new Map<Mark, number>()
  const keys = new Map<Mark, number>()
  const workspaces = new Map<Mark, number>()
  beforeAll(async () => {
    await builtConsole()
    app = await startApp({ env: { FOLDER_STORE: 'true', OUTBOUND_ALLOW: '127.0.0.1:9' } })
    for (const mark of marks) {
      const org = await app.otherOrg(`${mark} Works`)
      const cookie = await app.signIn(org.userId, org.orgId)
      people.push({ mark, role: 'owner', cookie })
      for (const role of ['admin', 'member'] as const) people.push({ mark, role, cookie: (await app.newMember(role, { orgId: org.orgId })).cookie })
      await fill(mark, org.key, cookie)
    }
    await app.gateway.app.limits.flushNow()
    browser = await startBrowser()
  }, 120_000)
  afterAll(async () => {
    await browser?.close()
    await app?.stop()
  })

  /** Makes one object of each kind in an organisation. */
  async function fill(mark: Mark, token: string, cookie: string): Promise<void> {
    const made = async (path: string, body: object, method = 'POST') => {
      const reply = await app.call(method, path, body, path.startsWith('/v1') ? { token } : { cookie })
      expect(reply.status, path).toBeLessThan(300)
      return reply.json
    }
    await made('/v1/me/memory-store', { store: 'folder' }, 'PUT')
    const agent = await made('/v1/me/agents', { name: `${mark}-agent` })
    agents.set(mark, agent.id)
    const { access_token: agentToken } = await made(`/v1/me/agents/${agent.id}/token`, {})
    keys.set(mark, (await made('/me/keys', { name: `${mark} service` })).id)
    workspaces.set(mark, (await made('/me/workspaces', { name: `${mark} team` })).id)
    await made('/me/webhooks', { url: `http://127.0.0.1:9/${mark.toLowerCase()}`, subscribe_all: true })
    await made('/me/members', { email: `guest@${mark.toLowerCase()}.test`, role: 'member' })
    await made('/v1/chat/completions', { model: 'test-model', messages: [{ role: 'user', content: 'Hello' }] })
    const note = await app.call('PUT', `/v1/me/memory/o?key=agents/${mark}-agent/${mark}.md`, `Of ${mark}.`, { token: agentToken })
    expect(note.status).toBe(200)
  }

  /** Opens pages as a person. Returns all that the gateway sent and all that the pages show. */
  async function seenBy(person: Person, visits: (page: Page) => Promise<readonly Visit[]>): Promise<{ text: string; faults: readonly string[] }> {
    const opened: ConsolePage = await openPage(browser, app, '/console', { cookie: person.cookie, expected: [/status of 40[34]/] })
    const { page } = opened
    const answers: Promise<string>[] = []
    page.on('response', response => {
      const { pathname } = new URL(response.url())
      // The stream of hints has no end, and no data.
      if (pathname.startsWith('/me') && pathname !== '/me/events') answers.push(response.text().catch(() => ''))
    })
    let text = ''
    for (const { path, isOther } of await visits(page)) {
      await page.goto(app.baseUrl + path)
      await page.getByRole('heading', { level: 1 }).or(page.getByText('There is no such page')).first().waitFor()
      await settled(page)
      const shown = (await page.locator('body').textContent()) + (await page.title())
      if (isOther) expect(shown, path).toMatch(/belongs to another organisation|not among those/)
      text += shown
    }
    text += (await Promise.all(answers)).join('\n')
    await opened.context.close()
    return { text, faults: opened.faults }
  }

  test('CONS-15 on every page and in every answer of two organisations, an owner, an admin and a member see nothing of the other organisation, also by its ids', async () => {
    for (const person of people) {
      const other = marks.find(mark => mark !== person.mark) as Mark
      const { text, faults } = await seenBy(person, async page => {
        await page.getByRole('navigation', { name: 'Pages' }).first().waitFor()
        const links = await page.locator('nav[aria-label="Pages"] a').evaluateAll(all => all.map(each => (each as unknown as { pathname: string }).pathname))
        const own = [`/console/agents/${agents.get(person.mark)}`, `/console/agents/${agents.get(person.mark)}?tab=memory`, '/console/agents?new=true']
        const others = [
          `/console/agents/${agents.get(other)}`,
          `/console/keys?key=${keys.get(other)}`,
          `/console/workspaces?workspace=${workspaces.get(other)}`,
        ]
        const calls = [`/console/calls?agent=${agents.get(other)}`, `/console/usage?agent=${agents.get(other)}`]
        expect(links.length).toBeGreaterThan(4)
        return [...[...links, ...own, ...calls].map(path => ({ path })), ...others.map(path => ({ path, isOther: true }))]
      })
      const who = `${person.role} of ${person.mark}`
      expect(text, who).toContain(`${person.mark}-agent`)
      expect(text.includes(other) || text.includes(other.toLowerCase()), `${who} sees ${other}`).toBe(false)
      expect(faults, who).toEqual([])
    }
  })

  test('CONS-15 what a member may not do is not offered, and the page says whom to ask', async () => {
    const owner = people.find(each => each.role === 'owner') as Person
    const member = people.find(each => each.role === 'member' && each.mark === owner.mark) as Person
    const openedBy = async ({ cookie }: Person, path: string): Promise<Page> => (await openPage(browser, app, path, { cookie })).page
    const acts = /^(Pause|End agent|Set budget|Change rules|Disable|Revoke|Enable|Edit limits)/
    const offered = async (page: Page): Promise<number> => page.locator('main, aside').getByText(acts).filter({ visible: true }).count()
    for (const [path, ready] of [
      [`/console/agents/${agents.get(owner.mark)}`, `${owner.mark}-agent`],
      [`/console/keys?key=${keys.get(owner.mark)}`, `${owner.mark} service`],
    ] as const) {
      const asOwner = await openedBy(owner, path)
      await asOwner.getByText(ready).first().waitFor()
      await settled(asOwner)
      expect(await offered(asOwner), `the owner at ${path}`).toBeGreaterThan(0)
      const asMember = await openedBy(member, path)
      await asMember.getByText(ready).first().waitFor()
      await asMember
        .getByText(/Ask \S*owner\S*/)
        .first()
        .waitFor()
      expect(await offered(asMember), `the member at ${path}`).toBe(0)
      await asOwner.context().close()
      await asMember.context().close()
    }
  })
})
