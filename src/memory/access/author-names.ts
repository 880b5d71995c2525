/** Finds the names of the authors of objects and versions, for lists that people read. Decision 0581 says why. */
import { type Db, statement } from '../../platform/db/db.ts'
import type { AuthorNameView } from '../provenance.ts'

/** The author in a row of the index or of the history. */
export interface AuthorRow {
  readonly userId: number | null
  readonly keyId: number | null
  readonly agentId: number | null
  /** The name that the agent had when it wrote. */
  readonly agentName: string | null
}

type Kind = 'user' | 'key' | 'agent'

const kinds: readonly Kind[] = ['user', 'key', 'agent']
/** Maximum number of ids of one kind in one statement. A page of a store has no more rows, so a page needs one statement. */
const idsMax = 1_000

/** The names that one list has found so far. A list over many pages asks for each author once. */
export class AuthorNames {
  readonly #db: Db
  readonly #orgId: number
  /** Null for an author whose name was not found. */
  readonly #names: Record<Kind, Map<number, string | null>> = { user: new Map(), key: new Map(), agent: new Map() }

  constructor(db: Db, orgId: number) {
    this.#db = db
    this.#orgId = orgId
  }

  /** Reads the names of those authors of these rows that are not known yet. */
  async learn(rows: readonly AuthorRow[]): Promise<void> {
    const [users, keys, agents] = kinds.map(kind => this.#unknown(kind, rows)) as [number[], number[], number[]]
    for (let at = 0; at < Math.max(users.length, keys.length, agents.length); at += idsMax) {
      const [userIds, keyIds, agentIds] = [users, keys, agents].map(ids => ids.slice(at, at + idsMax)) as [number[], number[], number[]]
      const found = await this.#db.many(findNames, this.#orgId, userIds, keyIds, agentIds)
      for (const { kind, id, name } of found) this.#names[kind].set(id, name)
    }
  }

  /**
   * Returns the names of the author of a row that `learn` has read. A person who has left, and a key or an agent that does not exist any more, get a text
   * that says so.
   */
  of(row: AuthorRow | undefined): AuthorNameView {
    if (row === undefined || (row.userId === null && row.keyId === null)) return { author_name: null }
    const { userId, keyId, agentId, agentName } = row
    const user = userId === null ? null : (this.#names.user.get(userId) ?? `Former member ${userId}`)
    const author = { author_name: user ?? this.#names.key.get(keyId ?? 0) ?? `Deleted key ${keyId}` }
    return agentId === null ? author : { ...author, agent_name: this.#names.agent.get(agentId) ?? agentName ?? `Deleted agent ${agentId}` }
  }

  /** Returns the authors of a kind that were not asked for yet, and notes that they are asked for now. */
  #unknown(kind: Kind, rows: readonly AuthorRow[]): number[] {
    const names = this.#names[kind]
    const unknown: number[] = []
    for (const row of rows) {
      const id = idOf(kind, row)
      if (id === null || names.has(id)) continue
      names.set(id, null)
      unknown.push(id)
    }
    return unknown
  }
}

function idOf(kind: Kind, { userId, keyId, agentId }: AuthorRow): number | null {
  if (kind === 'agent') return agentId
  // A key with a user shows the name of the user.
  return kind === 'user' ? userId : userId === null ? keyId : null
}

interface NameRow {
  readonly kind: Kind
  readonly id: number
  readonly name: string
}

/**
 * Returns the names of active members, of keys and of agents of the organisation. A member without a name has the first part of the address, because other
 * programs of the organisation read these lists too.
 */
const findNames = statement<[orgId: number, userIds: readonly number[], keyIds: readonly number[], agentIds: readonly number[]], NameRow>(
  'memory.find_author_names',
  `select 'user' as kind, u.id, coalesce(nullif(u.name, ''), split_part(u.email, '@', 1)) as name
   from org_members m join users u on u.id = m.user_id
   where m.org_id = $1::int and m.user_id = any($2::int[]) and m.status = 'active'
   union all select 'key', k.id, k.name from api_keys k where k.org_id = $1::int and k.id = any($3::int[])
   union all select 'agent', a.id, a.name from agents a where a.org_id = $1::int and a.id = any($4::int[])`,
)
