import { boundedPage, jsonBytes, type Paged } from '../../platform/db/bounded-page.ts'
import { statement } from '../../platform/db/db.ts'
import type { KeyScope } from '../../platform/security/principal.ts'
import type { KeyTier } from './key-rules.ts'

/** A key as the console shows it. */
export interface ListedKey {
  readonly id: number
  readonly userId: number | null
  /** False when the key's user is no longer an active member. */
  readonly hasOwner: boolean
  readonly workspaceId: number | null
  readonly name: string
  readonly prefix: string
  readonly scope: KeyScope
  readonly tier: KeyTier
  readonly rpmLimit: number | null
  readonly dailyLimit: number | null
  readonly enabled: boolean
  readonly disabledReason: 'manual' | 'inactivity' | null
  readonly lifecyclePin: 'keep' | null
  readonly noticeAt: Date | null
  readonly expiresAt: Date | null
  readonly revokedAt: Date | null
  readonly lastUsedAt: Date | null
  readonly createdAt: Date
  readonly rotatedAt: Date | null
  readonly previousUntil: Date | null
  readonly allowedModels: readonly string[] | null
  readonly allowedProviders: readonly string[] | null
  readonly maxCostUinr: bigint | null
  readonly maxOutputTokens: number | null
  readonly maxConcurrency: number | null
}

const columns = `k.id, k.user_id as "userId", (k.user_id is null or m.user_id is not null) as "hasOwner", k.workspace_id as "workspaceId",
     k.name, k.prefix, k.scope, k.tier, k.rpm_limit as "rpmLimit", k.daily_limit as "dailyLimit", k.enabled,
     k.disabled_reason as "disabledReason", k.lifecycle_pin as "lifecyclePin", k.inactivity_notice_at as "noticeAt",
     k.expires_at as "expiresAt", k.revoked_at as "revokedAt", k.last_used_at as "lastUsedAt", k.created_at as "createdAt",
     k.rotated_at as "rotatedAt", k.previous_until as "previousUntil", k.allowed_models as "allowedModels",
     k.allowed_providers as "allowedProviders", k.max_cost_uinr as "maxCostUinr", k.max_output_tokens as "maxOutputTokens",
     k.max_concurrency as "maxConcurrency"`
const withOwner = `left join org_members m on m.org_id = k.org_id and m.user_id = k.user_id and m.status = 'active'`

/** Returns a page of the keys that are not revoked, newest first, with ids below `belowId`. Null means all ids. It returns one key more than the page has. */
export const listKeys = statement<[orgId: number, belowId: number | null, limit: number, maxBytes: number], ListedKey & Paged>(
  'keys.list',
  `${boundedPage({
    from: 'from api_keys where org_id = $1::int and revoked_at is null and ($2::int is null or id < $2::int)',
    keys: 'id',
    order: 'id desc',
    bytes: jsonBytes('name', 'allowed_models', 'allowed_providers'),
    limit: '$3::int',
    maxBytes: '$4::int',
  })}
   select ${columns}, s.found from shown s join api_keys k on k.org_id = $1::int and k.id = s.id ${withOwner} order by s.place`,
)

/** Returns one key, revoked or not. */
export const findKey = statement<[orgId: number, keyId: number], ListedKey>(
  'keys.find',
  `select ${columns} from api_keys k ${withOwner} where k.org_id = $1::int and k.id = $2::int`,
)
