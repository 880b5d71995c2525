/** People with keys of their own, workspaces, and objects, for tests of who may do what in shared memory. */
import { expect } from 'vitest'
import type { TestApp, TestReply } from '../harness/app.ts'
import type { S3TestServer } from '../harness/s3-server.ts'

export interface Person {
  readonly userId: number
  readonly email: string
  readonly cookie: string
  /** A full key of theirs. */
  readonly key: string
}

/** A member of the home organisation with a full key, both as the console makes them. */
export async function personOf(app: TestApp, role: 'member' | 'admin' | 'owner', orgId = app.orgId): Promise<Person> {
  const made = await app.newMember(role, { orgId })
  return { ...made, key: await keyFor(app, made.cookie) }
}

/** A key that the person makes at the console. */
export async function keyFor(app: TestApp, cookie: string, params: { scope?: 'full' | 'inference'; workspace_id?: number } = {}): Promise<string> {
  const made = await app.call('POST', '/me/keys', params, { cookie })
  expect(made.status, made.text).toBe(201)
  return made.json.key
}

/** An agent token minted with a full key. */
export async function agentTokenOf(app: TestApp, key: string, name: string): Promise<string> {
  const made = await app.call('POST', '/v1/me/agents', { name }, { token: key })
  return (await app.call('POST', `/v1/me/agents/${made.json.id}/token`, {}, { token: key })).json.access_token
}

/** A key that no user backs, bound to a workspace or to none. */
export async function robotKey(app: TestApp, workspaceId: number | null, scope: 'full' | 'inference' = 'full'): Promise<{ key: string; keyId: number }> {
  const name = `robot ${++robots}`
  const made = await app.gateway.app.keys.create({ orgId: app.orgId, userId: null, workspaceId, name, scope, rpmLimit: null, dailyLimit: null })
  return { key: made.key, keyId: made.id }
}
let robots = 0

/** A workspace with that team, made by the owner at the console. */
export async function workspaceOf(app: TestApp, name: string, memberUids: readonly number[]): Promise<number> {
  const made = await app.call('POST', '/me/workspaces', { name, member_uids: memberUids }, { cookie: await app.signIn() })
  expect(made.status, made.text).toBe(201)
  return made.json.id
}

/** The person leaves the organisation. */
export async function leave(app: TestApp, person: Person): Promise<void> {
  const left = await app.call('DELETE', `/me/members/${person.userId}`, undefined, { cookie: person.cookie })
  expect(left.status, left.text).toBe(200)
}

/** Somebody who has left is invited again, accepts, and makes a new key. */
export async function comeBack(app: TestApp, { userId, email }: Person): Promise<string> {
  const invited = await app.call('POST', '/me/members', { email, role: 'member' }, { cookie: await app.signIn() })
  const elsewhere = await app.gateway.app.orgs.createOrg({ name: `Stay ${userId}`, ownerEmail: email })
  expect(elsewhere.userId).toBe(userId)
  const accepted = await app.call('POST', `/me/invitations/${invited.json.id}/accept`, undefined, { cookie: await app.signIn(userId, elsewhere.orgId) })
  expect(accepted.status, accepted.text).toBe(200)
  return keyFor(app, await app.signIn(userId, app.orgId))
}

/** What a call answered: its status, and the code of an error. */
export const answerOf = ({ status, json }: TestReply): string => (status < 400 ? String(status) : `${status} ${json?.error?.code}`)

export const pathOf = (key: string): string => `/v1/me/memory/o?key=${encodeURIComponent(key)}`
export const listOf = (prefix: string): string => `/v1/me/memory/list?prefix=${encodeURIComponent(prefix)}`

export interface MemoryCalls {
  put(token: string, key: string, text?: string): Promise<string>
  get(token: string, key: string): Promise<string>
  remove(token: string, key: string): Promise<string>
  /** 200 or the refusal of a list of that prefix. */
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

/** Points an organisation's memory at the server. */
export async function useStore(app: TestApp, server: S3TestServer, token: string = app.key, more: object = {}): Promise<void> {
  const { endpoint, bucket, accessKey, secretKey } = server
  const put = await app.call('PUT', '/v1/me/memory-store', { endpoint, bucket, access_key: accessKey, secret_key: secretKey, ...more }, { token })
  expect(put.status, put.text).toBe(200)
}
