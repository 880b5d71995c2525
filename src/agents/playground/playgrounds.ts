/** The agents with which people try models at the console. Decision 0572 says why each person has one. */
import type { Keys } from '../../gateway/keys/keys.ts'
import { namesOfActiveMembers } from '../../gateway/orgs/active-names.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db/db.ts'
import type { NewsItem } from '../../platform/db/db-control-log.ts'
import { fail, GatewayError } from '../../platform/errors.ts'
import { agentScopes, type SessionPrincipal } from '../../platform/security/principal.ts'
import { cleanName } from '../../platform/values/clean-name.ts'
import { uinrFromInr } from '../../platform/values/money.ts'
import type { AgentBudgets } from '../agent-budgets.ts'
import type { AgentView } from '../agent-view.ts'
import type { AgentViews } from '../listing/agent-views.ts'
import { revokeTree } from '../queries.ts'
import type { AgentTokens, MintedToken } from '../tokens/agent-tokens.ts'
import { narrowedScopes } from '../tokens/token-scopes.ts'
import { findPlayground, insertPlayground, type PlaygroundRow, setPlaygroundKey } from './playground-queries.ts'

export interface PlaygroundsDeps {
  readonly db: Db
  readonly clock: Clock
  readonly keys: Keys
  readonly tokens: AgentTokens
  readonly agentBudgets: AgentBudgets
  readonly views: AgentViews
  /** The setting PLAYGROUND_BUDGET_INR. */
  readonly playgroundBudgetInr: number
  /** Throws `org_limit_reached` when the organisation may not have one more agent. */
  readonly allowOneMore?: (tx: Tx, orgId: number) => Promise<void>
}

export interface PlaygroundToken {
  readonly agent: AgentView
  readonly token: MintedToken
}

/** The longest life of a playground token, in seconds. AGENT_TOKEN_TTL_S may set less. */
const lifeSeconds = 900
const defaultScope = 'inference'
/** Maximum length of a person's name within the name of the agent. */
const personCharsMax = 60
/** Maximum number of names that are tried for an agent and its key. */
const namesTriedMax = 10
/** Maximum number of tries to find or make the agent while other requests of the same person make, end and replace it. */
const attemptsMax = 5

/** The name of a playground agent is taken by another agent. */
class NameTakenError extends Error {
  override readonly name = 'NameTakenError'
}

/** Another request of the person has made the agent meanwhile. */
class MadeMeanwhileError extends Error {
  override readonly name = 'MadeMeanwhileError'
}

/**
 * Gives people tokens of their playground agents. The agent and the key that binds its tokens are made with the first token and found again later.
 * Nobody else gets a token of the agent, and no label names it. The membership of the person ends both.
 */
export class Playgrounds {
  readonly #deps: PlaygroundsDeps

  constructor(deps: PlaygroundsDeps) {
    this.#deps = deps
  }

  /** Returns a token of the person's playground agent. Throws `bad_request`, `forbidden` and `org_limit_reached`. */
  async token(person: SessionPrincipal, scope: string | undefined): Promise<PlaygroundToken> {
    const { tokens, views } = this.#deps
    const { orgId, userId } = person
    const scopes = narrowedScopes(scope ?? defaultScope, agentScopes)
    const row = await this.#agentOf(person)
    const agent = await tokens.agentToMint(orgId, row.id)
    const ttlSeconds = Math.min(lifeSeconds, tokens.lifeOf(undefined))
    const token = await tokens.issue({ agent, orgId, userId, keyId: row.playgroundKey, scopes, ttlSeconds })
    return { agent: await views.one(orgId, row), token }
  }

  /** Ends the playground agent of a person whose membership ends, in the transaction that ends it. Returns the news. */
  async endOf(tx: Tx, orgId: number, userId: number): Promise<NewsItem[]> {
    const found = await tx.maybe(findPlayground, orgId, userId)
    if (found === null) return []
    const ended = await tx.many(revokeTree, orgId, found.id, new Date(this.#deps.clock.nowMs()))
    return ended.map(({ id, epoch }): NewsItem => ({ kind: 'agent_revoked', ref: String(id), epoch }))
  }

  /** Returns the person's agent with a key that works. Makes the agent or replaces the key when necessary. */
  async #agentOf(person: SessionPrincipal): Promise<PlaygroundRow> {
    const { db, keys } = this.#deps
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const found = await db.maybe(findPlayground, person.orgId, person.userId)
      const key = found === null ? null : await keys.byId(found.playgroundKey)
      if (found !== null && key?.state === 'active') return found
      if (key?.state === 'disabled')
        throw fail('forbidden', { message: `The key of your playground (${key.name}) is disabled. An owner or admin of the organisation enables it.` })
      await this.#make(person, found)
    }
    throw new Error('a playground agent was made and ended over and over')
  }

  /** Makes a key, and the agent when there is none, in one transaction. Returns without effect when another request of the person was faster. */
  async #make(person: SessionPrincipal, before: PlaygroundRow | null): Promise<void> {
    const { orgId, userId } = person
    // A key that replaces another one has the name of the agent too, unless another key has taken it meanwhile.
    for (const name of before === null ? await this.#names(person) : [before.name, ...(await this.#names(person))]) {
      try {
        await this.#deps.keys.create(
          { orgId, userId, workspaceId: null, name, scope: 'inference', lifecyclePin: 'keep' },
          { also: (tx, keyId) => this.#makeIn(tx, person, keyId, name, before) },
        )
        return
      } catch (error) {
        if (error instanceof MadeMeanwhileError) return
        const isTaken = error instanceof NameTakenError || (error instanceof GatewayError && error.errorName === 'duplicate_key_name')
        if (!isTaken) throw error
      }
    }
    throw fail('agent_name_taken')
  }

  /** The organisation is locked here, so the requests of one person come one after the other. */
  async #makeIn(tx: Tx, { orgId, userId }: SessionPrincipal, keyId: number, name: string, before: PlaygroundRow | null): Promise<NewsItem[]> {
    const { agentBudgets, clock, allowOneMore, playgroundBudgetInr } = this.#deps
    // The end of the membership locks the organisation too, and ends only the agent and the keys that exist then.
    if ((await namesOfActiveMembers(tx, orgId, [userId])).size === 0) throw fail('forbidden', { message: 'You are no member of this organisation any more.' })
    const now = await tx.maybe(findPlayground, orgId, userId)
    if (now?.id !== before?.id || now?.playgroundKey !== before?.playgroundKey) throw new MadeMeanwhileError()
    if (now !== null) {
      await tx.exec(setPlaygroundKey, orgId, now.id, keyId)
      return []
    }
    await allowOneMore?.(tx, orgId)
    const agent = await tx.maybe(insertPlayground, orgId, userId, keyId, name, new Date(clock.nowMs()))
    if (agent === null) throw new NameTakenError()
    return playgroundBudgetInr === 0 ? [] : agentBudgets.setIn(tx, orgId, agent, uinrFromInr(playgroundBudgetInr))
  }

  async #names({ orgId, userId, email }: SessionPrincipal): Promise<string[]> {
    const known = (await namesOfActiveMembers(this.#deps.db, orgId, [userId])).get(userId)
    const person = [...(known ?? email)].slice(0, personCharsMax).join('').trim()
    const others = Array.from({ length: namesTriedMax - 2 }, (_, i) => `Playground (${person}, ${userId}-${i + 2})`)
    return [`Playground (${person})`, `Playground (${person}, ${userId})`, ...others].map(nameOrId(userId))
  }
}

/** Returns the name, or one with only the id when the person's name has characters that no name of an agent may have. */
const nameOrId =
  (userId: number) =>
  (name: string, index: number): string => {
    try {
      return cleanName(name)
    } catch {
      return `Playground (${userId}${index === 0 ? '' : `-${index + 1}`})`
    }
  }
