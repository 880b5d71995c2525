/** Every long list of the console takes the same parameters. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { pagesOf } from '../../harness/pages.ts'

let app: TestApp
let cookie: string
beforeAll(async () => {
  app = await startApp()
  cookie = await app.signIn()
})
afterAll(() => app.stop())

const named = (row: { name?: string; model?: string }) => row.name ?? row.model ?? ''

test('CAPI-05 lists of keys, agents, members, budgets, workspaces and chains are searched, sorted, filtered by state and owner, and paged by the server', async () => {
  const make = async (method: string, path: string, body: object) => {
    const reply = await app.call(method, path, body, { cookie })
    expect(reply.status, reply.text).toBeLessThan(300)
    return reply.json
  }
  const ids: Record<string, number> = {}
  for (const name of ['listed c', 'Listed a', 'listed b', 'other']) {
    await make('POST', '/me/keys', { name })
    ids[name] = (await make('POST', '/me/agents', { name })).id
    await make('POST', '/me/workspaces', { name })
    await make('POST', '/me/budgets', { scope: 'agent', target_id: ids[name], monthly_budget_inr: 1 + name.charCodeAt(name.length - 1) })
    const { userId } = await app.newMember('member')
    await make('POST', '/me/budgets', { scope: 'member', target_id: userId, monthly_budget_inr: 5 })
  }
  for (const model of ['test-model', 'alpha-only', 'global-only']) await make('PUT', `/me/routing/${model}`, { steps: ['test-model'] })

  const abc = ['Listed a', 'listed b', 'listed c']
  const lists = [
    { path: '/me/keys', field: 'keys', query: 'q=LISTED&sort=name&state=active&owner=me', expected: abc },
    { path: '/me/agents', field: 'agents', query: 'q=LISTED&sort=name&state=active&owner=me', expected: abc },
    { path: '/me/workspaces', field: 'workspaces', query: 'q=LISTED&sort=name&state=active', expected: abc },
    { path: '/me/budgets', field: 'budgets', query: 'q=LISTED&sort=cap&state=under&owner=me', expected: [...abc].reverse() },
    { path: '/me/routing', field: 'chains', query: 'q=ONLY&sort=model&owner=me', expected: ['alpha-only', 'global-only'] },
  ]
  for (const { path, field, query, expected } of lists) {
    const pages = pagesOf(app, path, field)
    const { rows, pages: read } = await pages.all(`?${query}&limit=1`, cookie)
    expect(rows.map(named), path).toEqual(expected)
    expect(read.length, path).toBeGreaterThanOrEqual(expected.length)
    expect((await pages.read(`?${query}&limit=200`, cookie)).json[field].map(named), path).toEqual(expected)
  }
  const members = pagesOf(app, '/me/members', 'members')
  const all = (await members.read('?state=active&role=member&sort=email', cookie)).json.members.map((member: { email: string }) => member.email)
  expect(all.length).toBe(4)
  expect((await members.all('?state=active&role=member&sort=email&limit=1', cookie)).rows.map(member => member.email)).toEqual(all)
  expect((await members.read(`?q=${all[2].toUpperCase()}`, cookie)).json.members.map((member: { email: string }) => member.email)).toEqual([all[2]])
})
