import type { App } from '../../composition/gateway.ts'

/** What the first start of an embedded database has made. The key and the token are shown only once. */
export interface FirstRun {
  readonly orgId: number
  readonly email: string
  readonly key: string
  readonly agentId: number
  readonly agentToken: string
}

const email = 'owner@localhost'

/**
 * Makes the first organisation, its owner, a key, an agent and a folder as memory store. Returns null when an organisation exists already.
 */
export async function makeFirstOrg(app: App): Promise<FirstRun | null> {
  if (!(await app.orgs.isEmpty())) return null
  const { orgId, userId } = await app.orgs.createOrg({ name: 'Home', ownerEmail: email })
  const created = await app.keys.create({ orgId, userId, workspaceId: null, name: 'first key', scope: 'full' })
  await app.memory.useFolder(orgId)
  const owner = await app.authenticator.byToken(created.key)
  const { agent } = await app.agents.createOrReuse(owner, 'first-agent')
  const token = await app.agents.tokens.mint(owner, agent.id)
  return { orgId, email, key: created.key, agentId: agent.id, agentToken: token.access_token }
}
