import { statement } from '../../../platform/db/db.ts'
import type { ObjectRow } from '../queries.ts'

/** An index row with the size of its object. */
export interface SizedRow extends ObjectRow {
  readonly sizeBytes: bigint
}

/** Texts between which keys are found: the first key, and the text before which keys end. */
type Ranges = [firsts: readonly string[], ends: readonly string[]]

/**
 * Returns the objects whose last write came from one author, after a key, in the order of the keys. Each range reads its part of the index of that kind
 * of author.
 */
const writtenBy = (kind: string, condition: string) =>
  statement<[orgId: number, authorId: number, ...Ranges, after: string, limit: number], SizedRow>(
    `memory.written_by_${kind}`,
    `select o.* from unnest($3::text[], $4::text[]) as r (first, before) cross join lateral (
       select key, etag, size_bytes as "sizeBytes", user_id as "userId", key_id as "keyId", agent_id as "agentId", agent_name as "agentName",
         agent_label as "agentLabel", written_at as "writtenAt"
       from memory_objects
       where org_id = $1::int and ${condition} and key >= r.first collate "C" and key < r.before collate "C" and key > $5::text collate "C"
       order by key limit $6::int) o
     order by o.key collate "C" limit $6::int`,
  )

/** The statements by the kind of author. A write of an agent also counts as a write of its user. */
export const writtenByAuthor = {
  agent: writtenBy('agent', 'agent_id = $2::int'),
  user: writtenBy('user', 'user_id = $2::int'),
  key: writtenBy('key', 'user_id is null and key_id = $2::int'),
}
