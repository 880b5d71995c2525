/**
 * `brigade demo --serve`: what it makes, that it makes the same for the same seed, and that it leaves nothing behind. The pictures of the documentation show it:
 * `UPDATE_PICTURES=1 npx vitest run test/console/demo.test.ts` writes them.
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { istDay } from '../../src/platform/values/ist-time.ts'
import { type StartedProgram, startProgram } from '../harness/started-program.ts'
import { until } from '../harness/until.ts'
import { program as browserProgram, openPage, settled, startBrowser, type Theme } from './browser.ts'

const root = join(import.meta.dirname, '..', '..')
const cli = join(root, 'dist', 'cli', 'brigade.js')
const images = join(root, 'docs', 'images')
const isUpdate = process.env['UPDATE_PICTURES'] === '1'

/** The pictures of the documentation: the page, a text that it shows when it is ready, and the width. */
const pictures = [
  { name: 'overview', path: '/console', ready: 'Needs attention', size: 'wide' },
  { name: 'agent', path: '/console/agents/1', ready: 'Last calls', size: 'wide' },
  { name: 'usage', path: '/console/usage', ready: 'Shares', size: 'wide' },
  { name: 'overview-phone', path: '/console', ready: 'Needs attention', size: 'narrow' },
] as const
const themes = ['light', 'dark'] as const satisfies readonly Theme[]

/** Width and height of a PNG file. */
const sizeOf = (png: Buffer): [number, number] => [png.readUInt32BE(16), png.readUInt32BE(20)]
const startMs = 240_000
const dayMs = 86_400_000

interface Demo {
  readonly program: StartedProgram
  readonly folder: string
  baseUrl: string
  readonly cookies: Record<'owner' | 'member', string>
}

// biome-ignore lint/suspicious/noExplicitAny: test assertions read arbitrary JSON.
async function read(demo: Demo, path: string, who: 'owner' | 'member' = 'owner'): Promise<any> {
  const response = await fetch(demo.baseUrl + path, { headers: { cookie: demo.cookies[who] } })
  expect(response.status, path).toBe(200)
  return response.json()
}

async function start(seed: number): Promise<Demo> {
  const folder = mkdtempSync(join(tmpdir(), 'brigade-demo-test-'))
  const program = startProgram(process.execPath, [cli, 'demo', '--serve', '--seed', String(seed)], { env: { TMPDIR: folder, HOME: folder } })
  await until(() => program.out().includes('Ctrl-C') || program.child.exitCode !== null, 'the demonstration serves', startMs)
  const [baseUrl = ''] = /http:\S+/.exec(program.out()) ?? [program.err()]
  const cookies = { owner: '', member: '' }
  for (const [who, words] of [
    ['owner', 'as the owner'],
    ['member', 'as a member'],
  ] as const) {
    const url = new URL(new RegExp(`${words}\\s+(http\\S+)`).exec(program.out())?.[1] ?? '')
    const token = url.searchParams.get('token') ?? ''
    const headers = { 'content-type': 'application/x-www-form-urlencoded', origin: baseUrl }
    const reply = await fetch(`${baseUrl}/auth/link`, { method: 'POST', headers, body: new URLSearchParams({ token }), redirect: 'manual' })
    cookies[who] = reply.headers.getSetCookie()[0]?.split(';')[0] ?? ''
  }
  return { program, folder, baseUrl, cookies }
}

describe('a demonstration that serves', () => {
  let demos: Demo[] = []
  beforeAll(async () => {
    demos = await Promise.all([start(7), start(7)])
  }, startMs)
  afterAll(async () => {
    for (const { program, folder } of demos) {
      program.child.kill('SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    }
  })

  /** All figures that depend on the seed only. Today is left out, because the two demonstrations started at different moments of it. */
  async function figures(demo: Demo): Promise<object> {
    const now = Date.now()
    const whole = `from=${istDay(now - 34 * dayMs)}&to=${istDay(now - dayMs)}`
    const { totals, days, by_agent, by_member } = await read(demo, `/me/activity?${whole}`)
    const { agents } = await read(demo, '/me/agents?limit=100&sort=name')
    const { members } = await read(demo, '/me/members')
    const { objects } = await read(demo, '/me/memory/usage')
    return {
      totals,
      days,
      by_agent,
      by_member,
      agents: agents.map(({ name, parent_id, owner_name, status }: Record<string, unknown>) => ({ name, parent_id, owner_name, status })),
      members: members.map(({ name, role }: Record<string, unknown>) => ({ name, role })),
      objects,
    }
  }

  test('FIRST-12 it has 35 days of calls, people, agents in three generations, budgets, notes, webhooks and a provider that is down', async () => {
    const [demo] = demos as [Demo]
    const now = Date.now()
    const { days, totals } = await read(demo, `/me/activity?from=${istDay(now - 34 * dayMs)}&to=${istDay(now)}`)
    expect(new Set(days.map(({ day }: { day: string }) => day)).size).toBe(35)
    expect(totals.requests).toBeGreaterThan(10_000)
    expect(totals.errors).toBeGreaterThan(100)
    const { agents } = await read(demo, '/me/agents?limit=100')
    expect(agents).toHaveLength(25)
    expect(Math.max(...agents.map(({ depth }: { depth: number }) => depth))).toBe(2)
    const shares = agents
      .filter((agent: { monthly_budget_inr: number | null }) => agent.monthly_budget_inr !== null)
      .map((agent: { spend_month_inr: number; monthly_budget_inr: number }) => Math.round((100 * agent.spend_month_inr) / agent.monthly_budget_inr))
    for (const share of [20, 80, 100]) expect(shares).toContain(share)
    expect((await read(demo, '/me/members')).members).toHaveLength(12)
    expect((await read(demo, '/me/workspaces')).workspaces).toHaveLength(3)
    expect((await read(demo, '/me/webhooks')).webhooks).toHaveLength(2)
    const listed = (await read(demo, '/me/keys?state=active&limit=100')).keys
    const used = listed.filter((key: { last_used_at: string | null }) => key.last_used_at !== null)
    expect(used.length).toBeGreaterThan(2)
    for (const { name, last_used_at } of used) expect(now - Date.parse(last_used_at), `${name} was used this week`).toBeLessThan(7 * dayMs)
    const { keys } = await read(demo, '/me/memory/list?prefix=agents/')
    const histories = await Promise.all(
      keys.slice(0, 20).map(async ({ key }: { key: string }) => (await read(demo, `/me/memory/history?key=${encodeURIComponent(key)}`)).versions.length),
    )
    expect(Math.max(...histories)).toBeGreaterThan(2)
    const { events } = await read(demo, '/me/activity/events?limit=20')
    const down = events.find(({ model }: { model: string }) => model === 'coastal-chat')
    const { calls } = await read(demo, `/me/activity/events/${down.request_id}`)
    expect(JSON.stringify(calls[0])).toContain('coastal')
  })

  test('FIRST-12 the links sign in an owner and a member, and the same seed makes the same data', async () => {
    const [one, other] = demos as [Demo, Demo]
    expect((await read(one, '/me')).role).toBe('owner')
    expect(await read(one, '/me', 'member')).toMatchObject({ role: 'member', user: { name: 'Kavya Iyer' }, org: { name: 'Neem Labs' } })
    expect(await figures(other)).toEqual(await figures(one))
  })

  test.skipIf(browserProgram === null)(
    'CONS-17 the pictures of README and docs are taken from it in both themes, and each one is shown on a page',
    async () => {
      const [demo] = demos as [Demo]
      const browser = await startBrowser()
      if (isUpdate) mkdirSync(images, { recursive: true })
      const readers = ['README.md', 'docs/start/with-the-console.md', 'docs/guides/web-console.md']
        .map(name => readFileSync(join(root, name), 'utf8'))
        .join('\n')
      for (const { name, path, ready, size } of pictures)
        for (const theme of themes) {
          const opened = await openPage(browser, { baseUrl: demo.baseUrl }, path, { cookie: demo.cookies.owner, theme, size })
          await opened.page.getByText(ready).first().waitFor()
          await settled(opened.page)
          const taken = await opened.page.screenshot()
          const file = `${name}-${theme}.png`
          if (isUpdate) writeFileSync(join(images, file), taken)
          expect(existsSync(join(images, file)), `${file} is in docs/images`).toBe(true)
          expect(sizeOf(readFileSync(join(images, file))), file).toEqual(sizeOf(taken))
          expect(readers, `a page shows ${file}`).toContain(`images/${file}`)
          expect(opened.faults, file).toEqual([])
          await opened.context.close()
        }
      await browser.close()
    },
    180_000,
  )

  test('FIRST-12 it is thrown away: Ctrl-C stops it and deletes its data', async () => {
    for (const { program, folder } of demos) {
      program.child.kill('SIGINT')
      expect(await program.ended).toBe(0)
      expect(readdirSync(folder).filter(name => name.startsWith('brigade-demo-'))).toEqual([])
    }
  })
})
