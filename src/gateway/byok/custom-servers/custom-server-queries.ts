import { statement } from '../../../platform/db/db.ts'
import type { Compliance } from '../checks/compliance.ts'

/** A registered server without its key. */
export interface CustomServerRow {
  readonly id: number
  readonly slug: string
  readonly name: string
  readonly modelId: string
  readonly baseUrl: string
  readonly upstreamModel: string
  readonly keyMask: string | null
  readonly residency: 'india' | 'global'
  readonly compliance: Compliance
  readonly checkedAt: Date
  readonly createdAt: Date
}

export interface SealedServerRow extends CustomServerRow {
  readonly keySealed: string | null
}

const columns = `id, slug, name, model_id as "modelId", base_url as "baseUrl", upstream_model as "upstreamModel", key_mask as "keyMask",
     residency, compliance, checked_at as "checkedAt", created_at as "createdAt"`

export const listServers = statement<[orgId: number], CustomServerRow>(
  'byok.list_servers',
  `select ${columns} from custom_endpoints where org_id = $1::int order by id`,
)

export const listSealedServers = statement<[orgId: number], SealedServerRow>(
  'byok.list_sealed_servers',
  `select ${columns}, key_sealed as "keySealed" from custom_endpoints where org_id = $1::int order by id`,
)

export const findServer = statement<[orgId: number, id: number], SealedServerRow>(
  'byok.find_server',
  `select ${columns}, key_sealed as "keySealed" from custom_endpoints where org_id = $1::int and id = $2::int`,
)

/** Finds the organisation of a server, its slug and its model. */
export const findServerOwner = statement<[id: number], { orgId: number; slug: string; modelId: string }>(
  'byok.find_server_owner',
  `select org_id as "orgId", slug, model_id as "modelId" from custom_endpoints where id = $1::int`,
)

/** Locks the organisation. Its registrations then run one after the other, and each sees the slugs and the number of servers that the others left. */
export const lockOrg = statement<[orgId: number], { id: number }>('byok.lock_org', `select id from orgs where id = $1::int for no key update`)

export const listSlugs = statement<[orgId: number], { slug: string }>('byok.list_slugs', `select slug from custom_endpoints where org_id = $1::int`)

export const insertServer = statement<
  [
    orgId: number,
    slug: string,
    name: string,
    modelId: string,
    baseUrl: string,
    upstreamModel: string,
    keySealed: string | null,
    keyMask: string | null,
    residency: string,
    compliance: string,
    now: Date,
  ],
  CustomServerRow
>(
  'byok.insert_server',
  `insert into custom_endpoints (org_id, slug, name, model_id, base_url, upstream_model, key_sealed, key_mask, residency, compliance, checked_at, created_at)
   values ($1::int, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text, $8::text, $9::text, $10::jsonb, $11::timestamptz, $11::timestamptz)
   returning ${columns}`,
)

export const noteCompliance = statement<[orgId: number, id: number, compliance: string, now: Date], CustomServerRow>(
  'byok.note_compliance',
  `update custom_endpoints set compliance = $3::jsonb, checked_at = $4::timestamptz where org_id = $1::int and id = $2::int returning ${columns}`,
)

export const changeServer = statement<
  [
    orgId: number,
    id: number,
    name: string,
    modelId: string,
    baseUrl: string,
    upstreamModel: string,
    keySealed: string | null,
    keyMask: string | null,
    residency: string,
    compliance: string,
    checkedAt: Date,
  ],
  CustomServerRow
>(
  'byok.change_server',
  `update custom_endpoints set name = $3::text, model_id = $4::text, base_url = $5::text, upstream_model = $6::text, key_sealed = $7::text,
     key_mask = $8::text, residency = $9::text, compliance = $10::jsonb, checked_at = $11::timestamptz
   where org_id = $1::int and id = $2::int returning ${columns}`,
)

/** Reads a server and locks its row against concurrent changes. */
export const lockServer = statement<[orgId: number, id: number], SealedServerRow>(
  'byok.lock_server',
  `select ${columns}, key_sealed as "keySealed" from custom_endpoints where org_id = $1::int and id = $2::int for no key update`,
)

export const deleteServer = statement<[orgId: number, id: number], { id: number }>(
  'byok.delete_server',
  `delete from custom_endpoints where org_id = $1::int and id = $2::int returning id`,
)
