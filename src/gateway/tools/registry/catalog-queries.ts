import { statement } from '../../../platform/db/db.ts'
import type { AuthKind, ListedTool } from './callable-tool.ts'

/** A tool that can be called, with what its calls need to know of its server. */
export interface CallableRow {
  readonly toolId: number
  readonly serverId: string
  readonly upstreamName: string
  readonly publicName: string
  readonly definition: ListedTool
  readonly definitionBytes: number
  readonly hash: string
}

/** Reads a page of the tools of an organisation that can be called, by public name. */
export const listCallableTools = statement<[orgId: number, after: string, limit: number], CallableRow>(
  'tools.list_callable_tools',
  `select p.id as "toolId", p.server_id as "serverId", p.upstream_name as "upstreamName", p.public_name as "publicName", d.definition,
     octet_length(d.definition::text) as "definitionBytes", encode(d.sha256, 'hex') as "hash"
   from tool_pins p join tool_definitions d on d.org_id = p.org_id and d.id = p.approved_id
   where p.org_id = $1::int and p.public_name > $2::text and p.approved_id = p.seen_id and p.blocked_at is null and p.gone_at is null
   order by p.public_name limit $3::int`,
)

export interface CallableServerRow {
  readonly id: string
  readonly slug: string
  readonly url: string
  readonly residency: 'india' | 'global'
  readonly priceUinr: bigint
  readonly timeoutMs: number | null
  readonly authKind: AuthKind
  readonly headerName: string | null
  readonly headerSealed: string | null
}

/** Reads the servers of an organisation that are on. */
export const listCallableServers = statement<[orgId: number], CallableServerRow>(
  'tools.list_callable_servers',
  `select s.id, s.slug, s.url, s.residency, s.price_uinr as "priceUinr", s.timeout_ms as "timeoutMs", s.auth_kind as "authKind", c.header_name as "headerName",
     c.value_sealed as "headerSealed"
   from tool_servers s left join tool_server_credentials c on c.org_id = s.org_id and c.server_id = s.id
   where s.org_id = $1::int and s.state = 'on' and s.deleted_at is null`,
)
