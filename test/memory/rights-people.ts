/** Makes people with their own keys, workspaces and objects, for tests of rights in shared memory. */
import { expect } from 'vitest'
import type { TestApp, TestReply } from '../harness/app.ts'
import type { S3TestServer } from '../harness/s3-server.ts'

export interface Person {
  readonly userId: number
  readonly email: string
  readonly cookie: string
  /** A full key of this person. */
  readonly key: string
}

/** Makes a member of the app's own organisation with a full key, through the console. */
export async function personOf(app: TestApp, role: 'member' | 'admin' | 'owner', orgId = app.orgId): Promise<Person> {
  const made = await app.newMember(role, { orgId })
  return { ...made, key: await keyFor(app, made.cookie) }
}

/** Makes a key at the console, as the person of the cookie. */
export async function keyFor(app: TestApp, cookie: string, params: { scope?: 'full' | 'inference'; workspace_id?: number } = {}): Promise<string> {
  const made = await app.call('POST', '/me/keys', params, { cookie })
  expect(made.status, made.text).toBe(201)
  return made.json.key
}

/** Mints an agent token with a full key. */
export async function agentTokenOf(app: TestApp, key: string, name: string): Promise<string> {
  const made = await app.call('POST', '/v1/me/agents', { name }, { token: key })
  return (await app.call('POST', `/v1/me/agents/${made.json.id}/token`, {}, { token: key })).json.access_token
}

/** Makes a key without a user. The key is bound to the workspace, if one is given. */
export async function robotKey(app: TestApp, workspaceId: number | null, scope: 'full' | 'inference' = 'full'): Promise<{ key: string; keyId: number }> {
  const name = `robot ${++robots}`
  const made = await app.gateway.app.keys.create({ orgId: app.orgId, userId: null, workspaceId, name, scope, rpmLimit: null, dailyLimit: null })
  return { key: made.key, keyId: made.id }
}
let robots = 0

/** Makes a workspace with that team, as the owner at the console. */
export async function workspaceOf(app: TestApp, name: string, memberUids: readonly number[]): Promise<number> {
  const made = await app.call('POST', '/me/workspaces', { name, member_uids: memberUids }, { cookie: await app.signIn() })
  expect(made.status, made.text).toBe(201)
  return made.json.id
}

/** Lets the person leave the organisation. */
export async function leave(app: TestApp, person: Person): Promise<void> {
  const left = await app.call('DELETE', `/me/members/${person.userId}`, undefined, { cookie: person.cookie })
  expect(left.status, left.text).toBe(200)
}

/** Invites a person who has left again. The person accepts and makes a new key, which is returned. */
export async function comeBack(app: TestApp, { userId, email }: Person): Promise<string> {
  const invited = await app.call('POST', '/me/members', { email, role: 'member' }, { cookie: await app.signIn() })
  const elsewhere = await app.gateway.app.orgs.createOrg({ name: `Stay ${userId}`, ownerEmail: email })
  expect(elsewhere.userId).toBe(userId)
  const accepted = await app.call('POST', `/me/invitations/${invited.json.id}/accept`, undefined, { cookie: await app.signIn(userId, elsewhere.orgId) })
  expect(accepted.status, accepted.text).toBe(200)
  return keyFor(app, await app.signIn(userId, app.orgId))
}

/** Returns the status of a reply, and the code of its error. */
export const answerOf = ({ status, json }: TestReply): string => (status < 400 ? String(status) : `${status} ${json?.error?.code}`)

export const pathOf = (key: string): string => `/v1/me/memory/o?key=${encodeURIComponent(key)}`
export const listOf = (prefix: string): string => `/v1/me/memory/list?prefix=${encodeURIComponent(prefix)}`

export interface MemoryCalls {
  put(token: string, key: string, text?: string): Promise<string>
  get(token: string, key: string): Promise<string>
  remove(token: string, key: string): Promise<string>
  /** Lists the prefix. Returns 200 or the refusal. */
  list(token: string, prefix: string): Promise<string>
}

export function memoryCalls(app: TestApp): MemoryCalls {
  return {
    put: async (token, key, text = 'x') => answerOf(await app.call('PUT', pathOf(key), text, { token })),
    get: async (token, key) => answerOf(await app.call('GET', pathOf(key), undefined, { token })),
    remove: async (token, key) => answerOf(await app.call('DELETE', pathOf(key), undefined, { token })),
    list: async (token, prefix) => answerOf(await app.call('GET', listOf(prefix), undefined, { token })),
  }
}

/** Configures the server as the memory store of an organisation. */
export async function useStore(app: TestApp, server: S3TestServer, token: string = app.key, more: object = {}): Promise<void> {
  const { endpoint, bucket, accessKey, secretKey } = server
  const put = await app.call('PUT', '/v1/me/memory-store', { endpoint, bucket, access_key: accessKey, secret_key: secretKey, ...more }, { token })
  expect(put.status, put.text).toBe(200)
}
