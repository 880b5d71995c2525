/** Makes the people, workspaces, keys and agents of the demonstration, all through the public interface. */
import type { App } from '../../../../composition/gateway.ts'
import { must } from '../demo-client.ts'
import type { Caller } from './calls.ts'
import { agents, type CastAgent, type CastModel, invited, keys, mailOf, memberName, models, people, workspaces } from './cast.ts'
import { numberOf, type Visitor, visitor } from './visitor.ts'

export interface MadePerson {
  readonly uid: number
  readonly ask: Visitor
}

export interface MadeAgent extends CastAgent {
  readonly id: number
  readonly ancestorIds: readonly number[]
}

/** The organisation as it was made. */
export interface Organisation {
  readonly owner: Visitor
  readonly people: ReadonlyMap<string, MadePerson>
  readonly agents: readonly MadeAgent[]
  readonly callers: readonly Caller[]
  readonly revokedKeyId: number
  /** A key of the owner, with which tokens of agents are minted. */
  readonly tokenKeyId: number
  /** The address of the member for whom a link is made. */
  readonly memberEmail: string
}

interface Start {
  readonly app: App
  readonly baseUrl: string
  readonly orgId: number
  readonly ownerUserId: number
}

/** Makes all of it. The clock of the gateway is at the beginning of the demonstration. */
export async function makeOrganisation(start: Start): Promise<Organisation> {
  const { app, baseUrl, orgId, ownerUserId } = start
  const owner = visitor(baseUrl, await app.sessions.create(ownerUserId, orgId))
  await owner('PATCH', '/me', { name: people[0]?.name })
  const made = new Map<string, MadePerson>([[people[0]?.name ?? '', { uid: ownerUserId, ask: owner }]])
  for (const person of people.slice(1)) made.set(person.name, await join(start, owner, person.name, person.role))
  for (const name of invited) await owner('POST', '/me/members', { email: mailOf(name), role: 'member' })
  const spaces = new Map<string, number>()
  for (const name of workspaces) {
    const member_uids = people.filter(each => each.workspace === name).map(each => must(made.get(each.name), each.name).uid)
    spaces.set(name, numberOf(await owner('POST', '/me/workspaces', { name, member_uids }), 'id'))
  }
  const callers: Caller[] = []
  let revokedKeyId = 0
  const keyOf = new Map<string, string>()
  for (const { name, owner: person, workspace, calls, isRevoked } of keys) {
    const body = { name, scope: 'full', workspace_id: spaces.get(workspace), expires_days: 180 }
    const key = await must(made.get(person), person).ask('POST', '/me/keys', body)
    keyOf.set(workspace, keyOf.get(workspace) ?? String(key['key']))
    if (isRevoked) revokedKeyId = numberOf(key, 'id')
    callers.push({ principal: await app.authenticator.byToken(String(key['key'])), agentId: null, ancestorIds: [], models, calls })
  }
  const tokenKeyId = numberOf(await owner('POST', '/me/keys', { name: 'Tokens of agents', scope: 'full', expires_days: 365 }), 'id')
  const madeAgents = await makeAgents(made)
  for (const agent of madeAgents) {
    const workspace = people.find(each => each.name === agent.owner)?.workspace ?? ''
    const principal = await app.authenticator.byToken(must(keyOf.get(workspace), workspace))
    callers.push({ principal, agentId: agent.id, ancestorIds: agent.ancestorIds, models: modelsOf(agent), calls: agent.calls })
  }
  return { owner, people: made, agents: madeAgents, callers, revokedKeyId, tokenKeyId, memberEmail: mailOf(memberName) }
}

const modelsOf = (agent: CastAgent): CastModel[] =>
  agent.models.map(id =>
    must(
      models.find(each => each.id === id),
      id,
    ),
  )

/** Lets a person join: the owner invites the address, and the person accepts in a session of an own organisation. */
async function join({ app, baseUrl, orgId }: Start, owner: Visitor, name: string, role: string): Promise<MadePerson> {
  const email = mailOf(name)
  const home = await app.orgs.createOrg({ name: `${name} (personal)`, ownerEmail: email, kind: 'personal' })
  const atHome = visitor(baseUrl, await app.sessions.create(home.userId, home.orgId))
  await atHome('PATCH', '/me', { name })
  const { id } = await owner('POST', '/me/members', { email, role })
  await atHome('POST', `/me/invitations/${id}/accept`)
  return { uid: home.userId, ask: visitor(baseUrl, await app.sessions.create(home.userId, orgId)) }
}

/** Makes the agents. A parent is made before its children. */
async function makeAgents(made: ReadonlyMap<string, MadePerson>): Promise<MadeAgent[]> {
  const list: MadeAgent[] = []
  for (const agent of agents) {
    const { ask } = must(made.get(agent.owner), agent.owner)
    const parent = list.find(each => each.name === agent.parent)
    const may_delegate = agents.some(each => each.parent === agent.name)
    const rules = { name: agent.name, may_delegate, ...(agent.parent === undefined ? { max_concurrency: 4 } : {}) }
    const path = parent === undefined ? '/me/agents' : `/me/agents/${parent.id}/children`
    const id = numberOf(await ask('POST', path, rules), 'id')
    list.push({ ...agent, id, ancestorIds: parent === undefined ? [] : [parent.id, ...parent.ancestorIds] })
  }
  return list
}
