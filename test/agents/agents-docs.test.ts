/** Runs the commands of docs/guides/agents.md unchanged. */
import { execFile, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'

const page = readFileSync(new URL('../../docs/guides/agents.md', import.meta.url), 'utf8')
const hasTools = process.platform !== 'win32' && ['bash', 'curl', 'node'].every(name => spawnSync(name, ['--version']).status === 0)

/** All code blocks between the block that sets the variables and the block about the project's own tests. */
const script = [...page.matchAll(/```sh\n([\s\S]*?)```/g)]
  .map(match => match[1] ?? '')
  .slice(1, -1)
  .join('\n')

describe.runIf(hasTools)('the page about agents', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ env: { SANDBOX: 'on' } })
  })
  afterAll(() => app?.stop())

  test('every command of the page does what the page says', async () => {
    const env = { PATH: process.env['PATH'] ?? '', BRIGADE: app.baseUrl, BRIGADE_KEY: app.key }
    const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], { env })
    const replies = stdout
      .split('\n')
      .filter(line => line !== '')
      .map(line => JSON.parse(line))
    expect(replies).toHaveLength(11)
    const [budget, list, whoami, chat, narrow, named, childChat, budgets, tooMuch, revoked, dead] = replies
    expect(budget).toMatchObject({ name: 'lead', monthly_budget_inr: 100, parent_id: null, depth: 0 })
    expect(list.agents).toHaveLength(1)
    expect(whoami).toMatchObject({ scope: 'memory:read usage:read', agent: { name: 'lead' } })
    for (const answer of [chat, named, childChat]) expect(answer.choices).toHaveLength(1)
    expect(narrow.error).toMatchObject({ code: 'forbidden', message: expect.stringContaining('needs the scope inference') })
    expect(budgets.budgets).toMatchObject([{ scope: 'agent', cap_inr: 100 }])
    expect(tooMuch).toMatchObject({ error: { code: 'budget_not_available' }, most_inr: 60 })
    expect(revoked).toMatchObject({ status: 'revoked' })
    expect(dead).toMatchObject({ error: { code: 'invalid_api_key' }, reason: 'agent_revoked' })
  })
})
