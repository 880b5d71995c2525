/**
 * Who may call what: every row of the endpoint table by every kind of caller, over HTTP. The expected code comes from the row's own access
 * rule and, independently, from access.txt, which people keep: neither can drift alone.
 */
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Binding } from '../../src/gateway/http/edge.ts'
import { bindingsOf, endpointTable } from '../../src/gateway/http/rows/endpoint-table.ts'
import { agentScopes, type Capability, mayCall, type Principal } from '../../src/platform/security/principal.ts'
import { startApp, type TestApp } from '../harness/app.ts'

/** What a caller meets at the door: `+` let in (whatever the row then says to an empty body or an unknown id), `1` 401, `3` 403, `4` no such path. */
type Cell = '+' | '1' | '3' | '4'

interface Caller {
  readonly name: string
  /** As the access rule sees it; null = no credential. */
  readonly principal: Principal | null
  /** The credential to send: made again for each call when the call may use it up. */
  credential(app: TestApp): Promise<{ token?: string | null; cookie?: string }>
}

const limits = { rpmLimit: null, dailyLimit: null }
const common = { orgId: 1, capabilities: [] as readonly Capability[], policies: [] }
const session = (role: 'owner' | 'admin' | 'member', capabilities: readonly Capability[] = []): Principal => ({
  ...common,
  kind: 'session',
  userId: 1,
  role,
  capabilities,
  email: 'a@b.test',
  sessionId: 's',
})
const key = (over: object): Principal => ({
  ...common,
  kind: 'key',
  userId: 1,
  role: 'owner',
  keyId: 1,
  keyName: 'k',
  scope: 'full',
  workspaceId: null,
  limits,
  ...over,
})
const agent: Principal = {
  ...common,
  kind: 'agent',
  userId: 1,
  role: 'owner',
  agentId: 1,
  agentName: 'a',
  ancestorIds: [],
  epoch: 1,
  tokenIds: [],
  keyId: 1,
  keyName: 'k',
  scopes: agentScopes,
  workspaceId: null,
  limits,
  expiresAtMs: 0,
  lifeSeconds: 900,
}

/** A member's full key: made through the console by that member. */
async function memberKey(app: TestApp): Promise<string> {
  const { cookie } = await app.newMember('member')
  return (await app.call('POST', '/me/keys', {}, { cookie })).json.key
}

/** In the order of the columns of access.txt. Every call gets a credential of its own, because some rows end the one that calls them. */
const callers: readonly Caller[] = [
  { name: 'owner session', principal: session('owner'), credential: async app => ({ cookie: (await app.newMember('owner')).cookie }) },
  { name: 'admin session', principal: session('admin'), credential: async app => ({ cookie: (await app.newMember('admin')).cookie }) },
  { name: 'member session', principal: session('member'), credential: async app => ({ cookie: (await app.newMember('member')).cookie }) },
  {
    name: 'member session with audit:view',
    principal: session('member', ['audit:view']),
    credential: async app => ({ cookie: (await app.newMember('member', { capabilities: ['audit:view'] })).cookie }),
  },
  { name: 'full key of an owner', principal: key({}), credential: async app => ({ token: app.key }) },
  { name: 'full key of a member', principal: key({ role: 'member' }), credential: async app => ({ token: await memberKey(app) }) },
  {
    name: 'full key without a user',
    principal: key({ userId: null, role: null }),
    credential: async app => ({ token: (await app.newKey({ withUser: false })).key }),
  },
  { name: 'inference key', principal: key({ scope: 'inference' }), credential: async app => ({ token: (await app.newKey({ scope: 'inference' })).key }) },
  { name: 'agent token', principal: agent, credential: async app => ({ token: (await app.newAgent(`agent ${++agents}`)).token }) },
  { name: 'nobody', principal: null, credential: async () => ({ token: null }) },
]
let agents = 0

/** `POST /me/keys` → one cell a caller. */
const kept = new Map(
  readFileSync(new URL('./access.txt', import.meta.url), 'utf8')
    .split('\n')
    .filter(line => line !== '' && !line.startsWith('#'))
    .map(line => {
      const [cells = '', ...at] = line.split(' ')
      return [at.join(' ').trim(), [...cells] as Cell[]]
    }),
)

const bindings = bindingsOf(endpointTable)
const methodOf = (binding: Binding): string => binding.at.split(' ')[0] ?? ''
const isRead = (binding: Binding): boolean => methodOf(binding) === 'GET'

/** The door as the row declares it. */
function declared(binding: Binding, { principal }: Caller): Cell {
  if (binding.auth === 'public' || binding.auth === 'signature') return '+'
  if (principal === null) return '1'
  const isSessionRow = binding.auth === 'session'
  const takes = principal.kind === 'session' ? binding.auth !== 'key' : principal.kind === 'agent' || !isSessionRow
  if (!takes) return '1'
  // At the console an agent is a member who only looks.
  if (isSessionRow && principal.kind === 'agent') {
    if (!isRead(binding)) return binding.access.operator === true ? '4' : '3'
    return verdictOf(mayCall({ ...principal, role: 'member' }, binding.access))
  }
  return verdictOf(mayCall(principal, binding.access))
}

const verdictOf = (verdict: ReturnType<typeof mayCall>): Cell => (verdict.ok ? '+' : verdict.isHidden === true ? '4' : '3')

/** Rows whose service refuses more than the row can say, because it depends on the object. */
const stricter: Readonly<Record<string, string>> = {
  'DELETE /me/members/{id}': 'a plain member removes nobody but themselves',
  'POST /v1/me/agents/{id}/children/{childId}/pause': 'an agent stops those below itself alone, and 999999 is another agent',
  'POST /v1/me/agents/{id}/children/{childId}/resume': 'an agent stops those below itself alone, and 999999 is another agent',
  'POST /v1/me/agents/{id}/children/{childId}/revoke': 'an agent stops those below itself alone, and 999999 is another agent',
}

/** Segments that have to look like something for the row to get as far as its access rule. */
const sample: Readonly<Record<string, string>> = { provider: 'alpha', model: 'test-model', pin: '560001', slug: 'nothing', space: 'nothing' }
const filled = (path: string): string => path.replace(/\{(\w+)\+?\}/g, (_, name: string) => sample[name] ?? '999999')

async function met(app: TestApp, binding: Binding, caller: Caller): Promise<Cell | string> {
  const hasBody = !isRead(binding) && methodOf(binding) !== 'DELETE'
  const reply = await app.call(methodOf(binding), filled(binding.at.split(' ')[1] ?? ''), hasBody ? {} : undefined, await caller.credential(app))
  if (reply.status === 401) return '1'
  if (reply.status === 403) return '3'
  if (reply.status === 404 && reply.json.error.message.startsWith('There is no such path.')) return '4'
  return reply.status < 500 ? '+' : `${reply.status} ${reply.text.slice(0, 200)}`
}

test('access.txt has a line for every row of the table and no other', () => {
  expect([...kept.keys()].sort()).toEqual(bindings.map(binding => binding.at).sort())
  for (const [at, cells] of kept) expect(cells.length, at).toBe(callers.length)
})

describe('who may call what: PERM-01 PERM-02 PERM-03 PERM-04 PERM-07 PERM-08 PERM-09 PERM-10; SCOPE-01 SCOPE-02 SCOPE-03 SCOPE-04 SCOPE-05 SCOPE-06 SCOPE-07 SCOPE-13 SCOPE-14', () => {
  let app: TestApp
  beforeAll(async () => {
    // The order of refusals is what is looked at here, so the anonymous limit must not come first.
    app = await startApp({
      env: {
        ANON_RPM: '100000',
        MEMBERS_MAX: '100000',
        RAZORPAY_KEY_ID: 'rzp_test_id',
        RAZORPAY_KEY_SECRET: 'rzp-secret',
        RAZORPAY_WEBHOOK_SECRET: 'rzp-hook',
      },
    })
  })
  afterAll(() => app.stop())

  for (const binding of bindings)
    test(binding.at, async () => {
      const expected = kept.get(binding.at) ?? []
      const seen: string[] = []
      for (const caller of callers) seen.push(await met(app, binding, caller))
      const named = (cells: readonly string[]): Record<string, string> => Object.fromEntries(callers.map((caller, at) => [caller.name, cells[at] ?? '']))
      const rule = callers.map((caller, at) => (binding.at in stricter && expected[at] === '3' ? '3' : declared(binding, caller)))
      expect(named(rule)).toEqual(named(expected))
      expect(named(seen)).toEqual(named(expected))
    })
})
