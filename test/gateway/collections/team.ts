import type { TestApp, TestReply } from '../../harness/app.ts'

/** An organisation with a person of every role, and functions that call the API for collections. */
export interface Team {
  readonly orgId: number
  readonly key: string
  readonly owner: string
  readonly admin: string
  readonly member: string
  /** `path` is appended to /me/collections. The owner makes the request unless another cookie is given. */
  post(path: string, body?: object, cookie?: string): Promise<TestReply>
  get(path: string, cookie?: string): Promise<TestReply>
  list(cookie?: string): Promise<TestReply>
  patch(id: number | string, body: object, cookie?: string): Promise<TestReply>
  remove(id: number | string, cookie?: string): Promise<TestReply>
  /** Removes every collection. */
  clear(): Promise<void>
  routing(): Promise<TestReply>
}

/** Returns the parameters of a valid collection, with `parts` in addition. */
export const params = (parts: Readonly<Record<string, unknown>> = {}): object => ({ name: 'A chain', model: 'test-model', steps: ['alpha-only'], ...parts })

export async function teamOf(app: TestApp, name: string): Promise<Team> {
  const { orgId, userId, key } = await app.otherOrg(name)
  const owner = await app.signIn(userId, orgId)
  const [admin, member] = [(await app.newMember('admin', { orgId })).cookie, (await app.newMember('member', { orgId })).cookie]
  const team: Team = {
    orgId,
    key,
    owner,
    admin,
    member,
    post: (path, body, cookie = owner) => app.call('POST', `/me/collections${path}`, body, { cookie }),
    get: (path, cookie = owner) => app.call('GET', `/me/collections${path}`, undefined, { cookie }),
    list: (cookie = owner) => app.call('GET', '/me/collections', undefined, { cookie }),
    patch: (id, body, cookie = owner) => app.call('PATCH', `/me/collections/${id}`, body, { cookie }),
    remove: (id, cookie = owner) => app.call('DELETE', `/me/collections/${id}`, undefined, { cookie }),
    async clear() {
      for (const { id } of (await team.list()).json.collections) await team.remove(id)
    },
    routing: () => app.call('GET', '/me/routing', undefined, { cookie: owner }),
  }
  return team
}
