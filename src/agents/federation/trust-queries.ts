import { boundedPage, jsonBytes, type Paged } from '../../platform/db/bounded-page.ts'
import { statement } from '../../platform/db/db.ts'
import type { AgentScope } from '../../platform/security/principal.ts'

/** A trust rule as it is stored. */
export interface TrustRow {
  readonly id: number
  readonly orgId: number
  readonly name: string
  readonly issuer: string
  readonly audience: string
  readonly subject: string
  readonly claims: Readonly<Record<string, string>>
  readonly jwksUri: string | null
  readonly jwks: unknown
  readonly agentId: number
  readonly keyId: number
  readonly scopes: readonly AgentScope[]
  /** Seconds that its tokens live. Null means AGENT_TOKEN_TTL_S. */
  readonly ttlSeconds: number | null
  readonly createdAt: Date
}

/** A rule as an exchange reads it: without its pasted keys, which may have many kilobytes. */
export interface MatchingTrustRow extends Omit<TrustRow, 'name' | 'jwks' | 'createdAt'>, Paged {
  /** Whether the keys were pasted. `pastedKeys` reads them. */
  readonly hasKeys: boolean
  /** Rules with the same digest have the same pasted keys. Null when it is not known. */
  readonly keysDigest: string | null
  /** Whether another organisation had the audience before, so that its jobs may still send tokens for it. */
  readonly hadOthers: boolean
}

const columns = `id, org_id as "orgId", name, issuer, audience, subject, claims, jwks_uri as "jwksUri", jwks, agent_id as "agentId", key_id as "keyId",
  scopes, ttl_s as "ttlSeconds", created_at as "createdAt"`

/** SQL of the bytes of what a rule says about tokens. */
const ruleBytes = jsonBytes('issuer', 'audience', 'subject', 'claims', 'jwks_uri')

/** Lists a page of the rules of an organisation, oldest first. It returns one rule more than the page has. */
export const listTrust = statement<[orgId: number, aboveId: number, limit: number, maxBytes: number], TrustRow & Paged>(
  'trust.list',
  `${boundedPage({
    from: 'from agent_trust where org_id = $1::int and id > $2::int',
    keys: 'id',
    order: 'id',
    bytes: jsonBytes('name', 'issuer', 'audience', 'subject', 'claims', 'jwks_uri', 'jwks'),
    limit: '$3::int',
    maxBytes: '$4::int',
  })}
   select ${columns}, found from shown join agent_trust using (id) where org_id = $1::int order by place`,
)

export const countTrust = statement<[orgId: number], { count: number }>(
  'trust.count',
  `select count(*)::int as "count" from agent_trust where org_id = $1::int`,
)

/** Locks the rules of an organisation against other writers until the end of the transaction. */
export const lockTrust = statement<[orgId: number], { done: unknown }>(
  'trust.lock',
  `select pg_advisory_xact_lock(hashtext('brigade.agent_trust'), $1::int)::text as "done"`,
)

/** Gives the organisation the pair of issuer and audience, unless another organisation has it. */
export const claimAudience = statement<[orgId: number, issuer: string, audience: string]>(
  'trust.claim_audience',
  `insert into agent_trust_audiences (issuer, audience, org_id) values ($2::text, $3::text, $1::int) on conflict do nothing`,
)

/** Returns the organisation that has the pair, and locks the pair until the end of the transaction. */
export const lockAudience = statement<[issuer: string, audience: string], { orgId: number }>(
  'trust.lock_audience',
  `select org_id as "orgId" from agent_trust_audiences where issuer = $1::text and audience = $2::text for update`,
)

/** Gives the organisation a pair of issuer and audience that no rule uses any more. It is a separate statement that runs after `lockAudience`. */
export const takeFreeAudience = statement<[orgId: number, issuer: string, audience: string, now: Date], { orgId: number }>(
  'trust.take_free_audience',
  `update agent_trust_audiences a set org_id = $1::int, changed_hands_at = $4::timestamptz where a.issuer = $2::text and a.audience = $3::text
     and not exists (select 1 from agent_trust t where t.issuer = a.issuer and t.audience = a.audience)
   returning org_id as "orgId"`,
)

export const insertTrust = statement<
  [
    orgId: number,
    name: string,
    issuer: string,
    audience: string,
    subject: string,
    claims: string,
    jwksUri: string | null,
    jwks: string | null,
    agentId: number,
    keyId: number,
    scopes: readonly string[],
    ttlSeconds: number | null,
    createdBy: number | null,
    createdAt: Date,
  ],
  TrustRow
>(
  'trust.insert',
  `insert into agent_trust (
     org_id, name, issuer, audience, subject, claims, jwks_uri, jwks, jwks_digest, agent_id, key_id, scopes, ttl_s, created_by, created_at)
   values ($1::int, $2::text, $3::text, $4::text, $5::text, $6::jsonb, $7::text, $8::jsonb, encode(sha256(convert_to(($8::jsonb)::text, 'UTF8')), 'hex'),
     $9::int, $10::int, $11::text[], $12::int, $13::int, $14::timestamptz)
   returning ${columns}`,
)

export const deleteTrust = statement<[orgId: number, id: number], { id: number }>(
  'trust.delete',
  'delete from agent_trust where org_id = $1::int and id = $2::int returning id',
)

/** Returns the number of bytes of the rules of an organisation for one issuer. */
export const measureTrust = statement<[orgId: number, issuer: string], { bytes: bigint }>(
  'trust.measure',
  `select coalesce(sum(${ruleBytes} + ${jsonBytes('jwks')}), 0)::bigint as "bytes" from agent_trust where org_id = $1::int and issuer = $2::text`,
)

/**
 * Returns the rules for an issuer and audiences, oldest first, up to a number of rules and of bytes. The query needs no organisation, because a pair of
 * issuer and audience belongs to one organisation.
 */
export const matchingTrust = statement<[issuer: string, audiences: readonly string[], limit: number, maxBytes: number], MatchingTrustRow>(
  'trust.matching',
  `${boundedPage({
    from: 'from agent_trust where issuer = $1::text and audience = any($2::text[])',
    keys: 'id',
    order: 'id',
    bytes: ruleBytes,
    limit: '$3::int',
    maxBytes: '$4::int',
  })}
   select id, org_id as "orgId", issuer, audience, subject, claims, jwks_uri as "jwksUri", jwks is not null as "hasKeys", jwks_digest as "keysDigest",
     agent_id as "agentId", key_id as "keyId", scopes, ttl_s as "ttlSeconds", found, exists (
       select 1 from agent_trust_audiences a where a.issuer = t.issuer and a.audience = t.audience and a.changed_hands_at is not null) as "hadOthers"
   from shown join agent_trust t using (id) order by place`,
)

/** Returns the pasted keys of a rule. */
export const findPastedKeys = statement<[orgId: number, id: number], { jwks: unknown }>(
  'trust.find_pasted_keys',
  'select jwks from agent_trust where org_id = $1::int and id = $2::int and jwks is not null',
)

/** Inserts a revocation. A second one changes nothing. */
export const insertRevocation = statement<[orgId: number, tokenId: string, revokedAt: Date, expiresAt: Date]>(
  'revoked_tokens.insert',
  `insert into revoked_tokens (org_id, token_id, revoked_at, expires_at)
   values ($1::int, $2::text, $3::timestamptz, $4::timestamptz) on conflict (token_id) do nothing`,
)

/** Returns the revocations of all organisations. A process must know them before it accepts tokens. */
export const liveRevocations = statement<[expiresAfter: Date], { tokenId: string }>(
  'revoked_tokens.live',
  'select token_id as "tokenId" from revoked_tokens where expires_at > $1::timestamptz',
)

export const deleteExpiredRevocations = statement<[expiredBefore: Date]>(
  'revoked_tokens.delete_expired',
  'delete from revoked_tokens where expires_at <= $1::timestamptz',
)
