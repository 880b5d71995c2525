import { afterAll, expect, test } from 'vitest'
import { createOrgs } from '../../../src/gateway/orgs/orgs.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { ControlLog } from '../../../src/platform/db/db-control-log.ts'
import { silentLog } from '../../../src/platform/observe/log.ts'
import { testDatabase } from '../../harness/database.ts'

const database = await testDatabase()
const controlLog = new ControlLog({ db: database.db, clock: systemClock, log: silentLog, pollMs: 1000 })
const orgs = createOrgs({ db: database.db, clock: systemClock, controlLog, cacheTtlMs: 30_000 })
afterAll(() => database.dispose())

test('a new organisation has its owner as the only member', async () => {
  const { orgId, userId } = await orgs.createOrg({ name: ' Acme ', ownerEmail: 'ann@acme.example' })
  expect(await orgs.find(orgId)).toEqual({
    id: orgId,
    name: 'Acme',
    kind: 'team',
    domain: 'acme.example',
    retentionDays: 0,
    keyInactivityDays: 90,
    displayCurrency: null,
  })
  expect(await orgs.members(orgId)).toEqual([{ userId, email: 'ann@acme.example', name: null, role: 'owner', capabilities: [] }])
  expect(await orgs.roleOf(orgId, userId)).toBe('owner')
})

test('one address is one person in all organisations, whether in upper or lower case', async () => {
  const first = await orgs.createOrg({ name: 'One', ownerEmail: 'Bob@Acme.example' })
  const second = await orgs.createOrg({ name: 'Two', ownerEmail: 'bob@acme.EXAMPLE' })
  expect(second.userId).toBe(first.userId)
  expect(second.orgId).not.toBe(first.orgId)
  expect(await orgs.findUser('BOB@acme.example')).toMatchObject({ id: first.userId, email: 'Bob@Acme.example' })
})

test('an organisation shows the mail domain of its founder if it is the domain of a company', async () => {
  const domainOf = async (ownerEmail: string, kind: 'team' | 'personal' = 'team') =>
    (await orgs.find((await orgs.createOrg({ name: 'D', ownerEmail, kind })).orgId))?.domain
  expect(await domainOf('cleo@Widgets.Example')).toBe('widgets.example')
  for (const email of ['cleo@gmail.com', 'cleo@Yahoo.co.in', 'cleo@localhost']) expect(await domainOf(email), email).toBeNull()
  expect(await domainOf('cleo@widgets.example', 'personal')).toBeNull()
})

test('people outside an organisation have no role in it', async () => {
  const a = await orgs.createOrg({ name: 'A', ownerEmail: 'a@acme.example' })
  const b = await orgs.createOrg({ name: 'B', ownerEmail: 'b@acme.example' })
  expect(await orgs.roleOf(a.orgId, b.userId)).toBeNull()
  expect(await orgs.findUser('nobody@acme.example')).toBeNull()
  expect(await orgs.find(2_000_000_000)).toBeNull()
})

test('invalid names and addresses are refused', async () => {
  await expect(orgs.createOrg({ name: '  ', ownerEmail: 'a@b.example' })).rejects.toMatchObject({ errorName: 'bad_name' })
  await expect(orgs.createOrg({ name: 'x\u0000y', ownerEmail: 'a@b.example' })).rejects.toMatchObject({ errorName: 'bad_name' })
  await expect(orgs.createOrg({ name: 'ok', ownerEmail: 'not an address' })).rejects.toMatchObject({ errorName: 'bad_request' })
})
