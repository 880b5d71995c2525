/** Makes the organisation of rights.txt: its people, teams and shares, and a credential for every kind of caller. */
import { expect } from 'vitest'
import type { TestApp } from '../harness/app.ts'
import type { S3TestServer } from '../harness/s3-server.ts'
import { agentTokenOf, answerOf, comeBack, keyFor, leave, personOf, robotKey, useStore, workspaceOf } from './rights-people.ts'

export interface World {
  /** One credential for each column of rights.txt, in the same order. */
  readonly callers: Readonly<Record<(typeof callerNames)[number], string>>
  /** A session of each person, by the column of the person's full key. The session of `left` is from before the person left. */
  readonly cookies: Readonly<Record<'owner' | 'admin' | 'mate' | 'sharer' | 'granted' | 'both' | 'stranger' | 'exmate' | 'left' | 'back' | 'other', string>>
  readonly userIds: { readonly stranger: number; readonly exmate: number }
  /** The team of the workspace. */
  readonly teamIds: readonly number[]
  readonly ownerCookie: string
  readonly names: {
    readonly crew: number
    readonly archived: number
    readonly space: string
    readonly retired: string
    readonly both: number
    readonly robot: number
  }
  /** Returns a path of rights.txt with its names filled in. */
  folderOf(path: string): string
}

const callerNames = [
  'owner',
  'admin',
  'mate',
  'sharer',
  'granted',
  'both',
  'stranger',
  'infer',
  'agent',
  'robot',
  'bound',
  'bagent',
  'bowner',
  'barch',
  'exmate',
  'left',
  'back',
  'other',
] as const

export async function makeWorld(app: TestApp, store: S3TestServer): Promise<World> {
  await useStore(app, store)
  const ownerCookie = await app.signIn()
  const person = (role: 'member' | 'admin' = 'member') => personOf(app, role)
  const [admin, mate, sharer, granted, both, stranger, exmate, left, back] = [
    await person('admin'),
    await person(),
    await person(),
    await person(),
    await person(),
    await person(),
    await person(),
    await person(),
    await person(),
  ]
  const teamIds = [admin, mate, both].map(each => each.userId)
  const crew = await workspaceOf(app, 'Crew', [...teamIds, exmate.userId, left.userId, back.userId])
  const archived = await workspaceOf(app, 'Archived', [both.userId, admin.userId])
  const names = { crew, archived, space: 'plans', retired: 'closed', both: both.userId, robot: 0 }
  const member_uids = [admin, granted, both, left, back].map(each => each.userId)
  for (const space of [names.space, names.retired])
    expect(answerOf(await app.call('POST', '/v1/me/memory/shares', { space, member_uids }, { token: sharer.key }))).toBe('201')

  const robot = await robotKey(app, null)
  const bound = (await robotKey(app, crew)).key
  const barch = (await robotKey(app, archived)).key
  const exmateKey = await keyFor(app, exmate.cookie, { workspace_id: crew })
  const other = await app.otherOrg('Others')
  await useStore(app, store, other.key)

  expect((await app.call('DELETE', `/me/workspaces/${archived}`, undefined, { cookie: ownerCookie })).status).toBe(200)
  expect((await app.call('DELETE', `/v1/me/memory/shares/${names.retired}`, undefined, { token: sharer.key })).status).toBe(200)
  await leave(app, left)
  await leave(app, back)
  const backKey = await comeBack(app, back)
  expect((await app.call('PATCH', `/me/workspaces/${crew}`, { member_uids: teamIds }, { cookie: ownerCookie })).status).toBe(200)

  const filled = { ...names, robot: robot.keyId }
  return {
    callers: {
      owner: app.key,
      admin: admin.key,
      mate: mate.key,
      sharer: sharer.key,
      granted: granted.key,
      both: both.key,
      stranger: stranger.key,
      infer: await keyFor(app, both.cookie, { scope: 'inference' }),
      agent: await agentTokenOf(app, both.key, 'agent of both'),
      robot: robot.key,
      bound,
      bagent: await agentTokenOf(app, bound, 'agent of the workspace'),
      bowner: await keyFor(app, ownerCookie, { workspace_id: crew }),
      barch,
      exmate: exmateKey,
      left: left.key,
      back: backKey,
      other: other.key,
    },
    cookies: {
      owner: ownerCookie,
      admin: admin.cookie,
      mate: mate.cookie,
      sharer: sharer.cookie,
      granted: granted.cookie,
      both: both.cookie,
      stranger: stranger.cookie,
      exmate: exmate.cookie,
      left: left.cookie,
      back: await app.signIn(back.userId),
      other: await app.signIn(other.userId, other.orgId),
    },
    userIds: { stranger: stranger.userId, exmate: exmate.userId },
    teamIds,
    ownerCookie,
    names: filled,
    folderOf: path => path.replace(/<(\w+)>/g, (all, name: string) => String(Object.entries(filled).find(([known]) => known === name)?.[1] ?? all)),
  }
}
