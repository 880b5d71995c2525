import { statement } from '../platform/db/db.ts'
import type { AgentRules } from './agent-rules.ts'

export type AgentStatus = 'active' | 'revoked'
/** The rank of the person or agent that paused an agent. */
export type PausedBy = 'agent' | 'member' | 'admin'

export interface AgentRow extends AgentRules {
  readonly id: number
  readonly name: string
  readonly status: AgentStatus
  /** The id of the agent that created this agent, or null. */
  readonly parentId: number | null
  /** Number of agents above this agent in its family, at most 3. */
  readonly depth: number
  readonly mayDelegate: boolean
  /** The member who answers for the agent: the one that an admin named, otherwise the one who created it. */
  readonly ownerUser: number | null
  /** The key that created the agent, or that let its parent act. Null when a signed-in person created it. */
  readonly createdByKey: number | null
  /** The person who created the agent, or the user of that key. */
  readonly createdByUser: number | null
  /** The person whose playground agent it is. Null for an ordinary agent. */
  readonly playgroundUser: number | null
  /** The end of its last call, to within ten seconds. */
  readonly lastCallAt: Date | null
  /** An odd number means that the agent is paused. */
  readonly pauseSeq: number
  readonly pausedBy: PausedBy | null
  /** The depth of the agent that paused this one. Null when no agent paused it, or when the depth of that agent is unknown. */
  readonly pausedByDepth: number | null
  /** The limits that only owners, admins and the operator may loosen. */
  readonly adminSet: readonly string[]
  readonly createdAt: Date
}

export interface AgentWithAncestors extends AgentRules {
  readonly id: number
  readonly name: string
  readonly status: AgentStatus
  readonly epoch: number
  /** The ids of the agents above, nearest first, at most 3. */
  readonly ancestorIds: readonly number[]
  /** The member who answers for the agent. */
  readonly ownerUser: number | null
  /** The person whose playground agent it is. Null for an ordinary agent. */
  readonly playgroundUser: number | null
}

const ownerColumn = 'coalesce(owner_user, created_by_user)'
const ruleColumns = `allowed_models as "allowedModels", allowed_providers as "allowedProviders", max_cost_uinr as "maxCostUinr",
  max_output_tokens as "maxOutputTokens", max_concurrency as "maxConcurrency", tpm_limit as "tpmLimit", allowed_tools as "allowedTools", run_caps as "runCaps"`
/** The columns of an agent. Only statements of this domain use them. */
export const agentColumns = `id, name, status, parent_id as "parentId", depth, may_delegate as "mayDelegate", ${ownerColumn} as "ownerUser",
  created_by_key as "createdByKey", created_by_user as "createdByUser", playground_user as "playgroundUser", last_call_at as "lastCallAt",
  pause_seq as "pauseSeq", paused_by as "pausedBy", paused_by_depth as "pausedByDepth", admin_set as "adminSet", created_at as "createdAt", ${ruleColumns}`

export const insertAgent = statement<
  [
    orgId: number,
    name: string,
    mayDelegate: boolean,
    createdByKey: number | null,
    createdByUser: number | null,
    createdAt: Date,
    allowedModels: readonly string[] | null,
    allowedProviders: readonly string[] | null,
    maxCostUinr: bigint | null,
    maxOutputTokens: number | null,
    maxConcurrency: number | null,
    parentId: number | null,
    depth: number,
    adminSet: readonly string[],
    allowedTools: readonly string[] | null,
    runCaps: string | null,
    tpmLimit: number | null,
  ],
  AgentRow
>(
  'agents.insert',
  `insert into agents (org_id, name, may_delegate, created_by_key, created_by_user, created_at, allowed_models, allowed_providers,
     max_cost_uinr, max_output_tokens, max_concurrency, parent_id, depth, admin_set, allowed_tools, run_caps, tpm_limit)
   values ($1::int, $2::text, $3::boolean, $4::int, $5::int, $6::timestamptz, $7::text[], $8::text[], $9::bigint, $10::int, $11::int,
     $12::int, $13::int, $14::text[], $15::text[], $16::jsonb, $17::int)
   on conflict (org_id, name) where status = 'active' do nothing
   returning ${agentColumns}`,
)

/**
 * Finds an active agent by the forms of its name. Several agents from before the normalisation may match. In that case, the agent with the earliest
 * form in the list is returned.
 */
export const findActiveByName = statement<[orgId: number, forms: readonly string[]], AgentRow>(
  'agents.find_active_by_name',
  `select ${agentColumns} from agents where org_id = $1::int and name = any($2::text[]) and status = 'active'
   order by array_position($2::text[], name) limit 1`,
)

/** Returns the active agent and locks it for a change. It waits while another transaction changes the same agent. */
export const lockActive = statement<[orgId: number, agentId: number], AgentRow>(
  'agents.lock_active',
  `select ${agentColumns} from agents where org_id = $1::int and id = $2::int and status = 'active' for no key update`,
)

export const lockAgent = statement<[orgId: number, agentId: number], AgentRow>(
  'agents.lock',
  `select ${agentColumns} from agents where org_id = $1::int and id = $2::int for no key update`,
)

/** Locks several agents in the order of their ids. Older agents come first, so a caller locks a family from the top. */
export const lockAgents = statement<[orgId: number, agentIds: readonly number[]], AgentRow>(
  'agents.lock_several',
  `select ${agentColumns} from agents where org_id = $1::int and id = any($2::int[]) order by id for no key update`,
)

export const setAgentRules = statement<
  [
    orgId: number,
    agentId: number,
    mayDelegate: boolean,
    allowedModels: readonly string[] | null,
    allowedProviders: readonly string[] | null,
    maxCostUinr: bigint | null,
    maxOutputTokens: number | null,
    maxConcurrency: number | null,
    adminSet: readonly string[],
    allowedTools: readonly string[] | null,
    runCaps: string | null,
    tpmLimit: number | null,
  ],
  AgentRow
>(
  'agents.set_rules',
  `update agents set may_delegate = $3::boolean, allowed_models = $4::text[], allowed_providers = $5::text[], max_cost_uinr = $6::bigint,
     max_output_tokens = $7::int, max_concurrency = $8::int, admin_set = $9::text[], allowed_tools = $10::text[],
     run_caps = $11::jsonb, tpm_limit = $12::int
   where org_id = $1::int and id = $2::int returning ${agentColumns}`,
)

/** Names the member who answers for the agent. */
export const setOwner = statement<[orgId: number, agentId: number, ownerUser: number], AgentRow>(
  'agents.set_owner',
  `update agents set owner_user = $3::int where org_id = $1::int and id = $2::int returning ${agentColumns}`,
)

export const setAdminSet = statement<[orgId: number, agentId: number, adminSet: readonly string[]]>(
  'agents.set_admin_set',
  `update agents set admin_set = $3::text[] where org_id = $1::int and id = $2::int`,
)

export const setPause = statement<[orgId: number, agentId: number, pauseSeq: number, pausedBy: string | null, pausedByDepth: number | null], AgentRow>(
  'agents.set_pause',
  `update agents set pause_seq = $3::int, paused_by = $4::text, paused_by_depth = $5::int where org_id = $1::int and id = $2::int returning ${agentColumns}`,
)

/** Returns the pause states of two groups over all organisations: agents that are paused, and agents that the process believes to be paused. */
export const pauseStates = statement<[knownIds: readonly number[]], { id: number; seq: number }>(
  'agents.pause_states',
  `select id, pause_seq as "seq" from agents /* every org_id */ where (pause_seq % 2 = 1 and status = 'active') or id = any($1::int[])`,
)

/** Needs no organisation, because the id comes from a signed token. */
export const findRules = statement<[agentId: number], AgentRules>('agents.find_rules', `select ${ruleColumns} from agents where id = $1::int`)

export const findAgent = statement<[orgId: number, agentId: number], AgentRow>(
  'agents.find',
  `select ${agentColumns} from agents where org_id = $1::int and id = $2::int`,
)

export const findAgents = statement<[orgId: number, agentIds: readonly number[]], AgentRow>(
  'agents.find_several',
  `select ${agentColumns} from agents where org_id = $1::int and id = any($2::int[])`,
)

/** Returns the names of the active agents among these ids. */
export const activeNamesOf = statement<[orgId: number, agentIds: readonly number[]], { id: number; name: string }>(
  'agents.active_names_of',
  `select a.id, a.name from unnest($2::int[]) w(id) join agents a on a.org_id = $1::int and a.id = w.id where a.status = 'active'`,
)

export const namesOf = statement<[orgId: number, agentIds: readonly number[]], { id: number; name: string }>(
  'agents.names_of',
  `select id, name from agents where org_id = $1::int and id = any($2::int[])`,
)

/** Returns those of these agents that a member owns. */
export const ownedOf = statement<[orgId: number, agentIds: readonly number[], userId: number], { id: number }>(
  'agents.owned_of',
  `select a.id from unnest($2::int[]) w(id) join agents a on a.org_id = $1::int and a.id = w.id where ${ownerColumn} = $3::int`,
)

const withAncestors = (condition: string): string =>
  `with recursive found as (
     select id, name, status, epoch, parent_id, ${ownerColumn} as owner_user, playground_user, ${ruleColumns} from agents where org_id = $1::int and ${condition} limit 1
   ), up(id, depth) as (
     select f.parent_id, 1 from found f where f.parent_id is not null
     union all
     select a.parent_id, up.depth + 1 from up join agents a on a.org_id = $1::int and a.id = up.id where a.parent_id is not null and up.depth < 3
   )
   select f.id, f.name, f.status, f.epoch, f.owner_user as "ownerUser", f.playground_user as "playgroundUser", f."allowedModels", f."allowedProviders", f."maxCostUinr", f."maxOutputTokens", f."maxConcurrency", f."tpmLimit", f."allowedTools", f."runCaps",
     coalesce((select array_agg(up.id order by up.depth) from up), '{}'::int[]) as "ancestorIds" from found f`

export const findWithAncestors = statement<[orgId: number, agentId: number], AgentWithAncestors>('agents.find_with_ancestors', withAncestors('id = $2::int'))

/**
 * Finds an agent by id or exact name. A name finds only agents that a person or a key made, because an agent chooses the names of its children. Decision
 * 0673 says why. A playground agent is not found, because only its person acts as it. An active agent wins over a revoked one, then an id wins over a name,
 * then the newest agent wins.
 */
export const findByLabel = statement<[orgId: number, agentId: number | null, name: string], AgentWithAncestors>(
  'agents.find_by_label',
  withAncestors(
    `(id = $2::int or (name = $3::text and parent_id is null)) and playground_user is null
     order by (status = 'active') desc, (id is not distinct from $2::int) desc, id desc`,
  ),
)

/** Revokes the agent and all active agents below it. The rows are locked in the order of their ids, so two revocations in one family do not deadlock. */
export const revokeTree = statement<[orgId: number, agentId: number, now: Date], { id: number; epoch: number; isRuledByAdmin: boolean }>(
  'agents.revoke_tree',
  `with recursive tree(id) as (
     select id from agents where org_id = $1::int and id = $2::int
     union
     select a.id from tree t join agents a on a.org_id = $1::int and a.parent_id = t.id
   ), locked as materialized (
     select a.id from agents a where a.org_id = $1::int and a.id in (select id from tree) and a.status = 'active' order by a.id for update
   )
   update agents a set status = 'revoked', epoch = a.epoch + 1, epoch_at = clock_timestamp(), revoked_at = $3::timestamptz
   from locked where a.org_id = $1::int and a.id = locked.id and a.status = 'active'
   returning a.id, a.epoch, (a.paused_by is not distinct from 'admin' or cardinality(a.admin_set) > 0) as "isRuledByAdmin"`,
)

/** Returns the recent epochs of all organisations. A process must know them before it accepts tokens. */
export const recentEpochs = statement<[windowMs: number], { id: number; epoch: number }>(
  'agents.recent_epochs',
  `select id, epoch from agents /* every org_id */ where epoch > 1 and epoch_at > clock_timestamp() - make_interval(secs => $1::int / 1000.0)`,
)

export interface SigningKeyRow {
  readonly kid: string
  readonly state: 'next' | 'current' | 'retired'
  readonly publicJwk: unknown
  readonly privateSealed: string
}

/** Returns the current key, the next key, and the retired keys whose tokens may still be valid. */
export const loadSigningKeys = statement<[keepMs: number], SigningKeyRow>(
  'signing_keys.load',
  `select kid, state, public_jwk as "publicJwk", private_sealed as "privateSealed" from signing_keys
   where state <> 'retired' or retired_at > clock_timestamp() - make_interval(secs => $1::int / 1000.0)
   order by case state when 'current' then 0 when 'next' then 1 else 2 end, retired_at desc`,
)

/** Inserts a key. It does nothing when another process inserted a key first, because each of the two states holds at most one key. */
export const insertSigningKey = statement<[kid: string, state: string, publicJwk: string, privateSealed: string]>(
  'signing_keys.insert',
  `insert into signing_keys (kid, state, public_jwk, private_sealed, created_at, signs_since)
   values ($1::text, $2::text, $3::jsonb, $4::text, clock_timestamp(), case when $2::text = 'current' then clock_timestamp() end) on conflict do nothing`,
)

/** Lets only one process rotate keys at a time, until the end of the transaction. */
export const lockRotation = statement<[], { done: unknown }>(
  'signing_keys.lock_rotation',
  `select pg_advisory_xact_lock(hashtext('brigade.signing_keys'))::text as "done"`,
)

/** Returns how long the next key has been public and how long the current key has signed. */
export const keyAges = statement<[], { kid: string; state: 'current' | 'next'; privateSealed: string; ageMs: number }>(
  'signing_keys.ages',
  `select kid, state, private_sealed as "privateSealed",
     (extract(epoch from clock_timestamp() - case state when 'current' then coalesce(signs_since, created_at) else created_at end) * 1000)::float8 as "ageMs"
   from signing_keys where state <> 'retired'`,
)

/** Deletes the next key. It has never signed a token. */
export const deleteNextKey = statement<[]>('signing_keys.delete_next', `delete from signing_keys where state = 'next'`)

export const retireCurrentKey = statement<[]>(
  'signing_keys.retire_current',
  `update signing_keys set state = 'retired', retired_at = clock_timestamp() where state = 'current'`,
)

export const promoteNextKey = statement<[]>(
  'signing_keys.promote_next',
  `update signing_keys set state = 'current', signs_since = clock_timestamp() where state = 'next'`,
)
