import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { adminHandler } from '../../src/operations/admin/commands/admin-commands.ts'
import { statement } from '../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../harness/app.ts'

const sealWithAnotherKey = statement<[]>('test.seal_with_another_key', "update signing_keys set private_sealed = 'v1.00000000.AAAA'")

describe("the operator's commands", () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp()
  })
  afterAll(() => app.stop())
  const run = (name: string, args: Record<string, unknown>) => adminHandler(app.gateway.app)({ name, args })

  test('revoke-key ends a key immediately, and does not find a key of another organisation', async () => {
    const { key, keyId } = await app.newKey()
    expect((await app.call('GET', '/v1/me/whoami', undefined, { token: key })).status).toBe(200)
    await expect(run('revoke-key', { org: app.orgId + 1000, key: keyId })).rejects.toThrow('no such key')
    await run('revoke-key', { org: app.orgId, key: keyId })
    expect((await app.call('GET', '/v1/me/whoami', undefined, { token: key })).status).toBe(401)
  })

  test('budget sets and clears the cap of an organisation, a key or an agent', async () => {
    const { key, keyId } = await app.newKey()
    const budgets = async () => (await app.call('GET', '/v1/me/budgets', undefined, { token: key })).json.budgets
    await run('budget', { org: app.orgId, scope: 'key', id: keyId, inr: 12.5 })
    await run('budget', { org: app.orgId, scope: 'org', inr: 100, strict: true })
    expect(await budgets()).toEqual([
      expect.objectContaining({ scope: 'key', id: String(keyId), cap_inr: 12.5, strict: false }),
      expect.objectContaining({ scope: 'org', id: String(app.orgId), cap_inr: 100, strict: true }),
    ])
    // EDGE-24: no amount removes a limit.
    for (const wrong of [{ inr: 0 }, {}, { inr: 5, clear: true }]) await expect(run('budget', { org: app.orgId, scope: 'org', ...wrong })).rejects.toThrow()
    expect(await budgets()).toHaveLength(2)
    await run('budget', { org: app.orgId, scope: 'key', id: keyId, clear: true })
    await run('budget', { org: app.orgId, scope: 'org', clear: true })
    expect(await budgets()).toEqual([])
  })

  test('one line names the wrong arguments of a command', async () => {
    await expect(run('budget', { org: app.orgId, scope: 'galaxy', inr: 1 })).rejects.toThrow(/^scope: /)
    await expect(run('create', { email: 'a@b.test' })).rejects.toThrow(/^org: /)
    await expect(run('dance', {})).rejects.toThrow('unknown command')
  })

  test('doctor finds nothing wrong with a healthy gateway', async () => {
    const findings = (await run('doctor', {})) as { what: string; state: string }[]
    expect(findings.filter(finding => finding.state !== 'ok')).toEqual([])
    expect(findings.map(finding => finding.what)).toEqual(expect.arrayContaining(['database', 'master key', 'notifications', 'money', 'providers']))
  })

  test('doctor reports a master key that cannot open the sealed values', async () => {
    await app.newAgent('sealed')
    await app.db.exec(sealWithAnotherKey)
    const findings = (await run('doctor', {})) as { what: string; state: string; detail: string }[]
    expect(findings.filter(finding => finding.state !== 'ok')).toEqual([
      { what: 'master key', state: 'wrong', detail: expect.stringContaining('Put the old one back') },
      {
        what: 'sealed values',
        state: 'warning',
        detail: expect.stringContaining('sealed under the master key 00000000, which this process does not have'),
      },
    ])
  })
})
