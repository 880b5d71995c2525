import { jsonBytes } from '../../../platform/db/bounded-page.ts'
import { type Statement, statement } from '../../../platform/db/db.ts'
import { type Walked, walkedColumns, walkedPage } from '../../../platform/db/walked-page.ts'
import type { KeyScope } from '../../../platform/security/principal.ts'
import type { StoredRunCaps } from '../../../platform/security/run-caps.ts'
import type { KeyTier } from '../key-rules.ts'

/**
 * The states of a key. `notice`: the key is disabled at the end of the notice unless somebody uses it. `owner_left`: the key's user is no
 * longer an active member.
 */
export const keyStates = ['active', 'notice', 'disabled', 'disabled_inactive', 'expired', 'owner_left', 'revoked'] as const
export type KeyState = (typeof keyStates)[number]

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
  readonly tpmLimit: number | null
  readonly allowedTools: readonly string[] | null
  readonly runCaps: StoredRunCaps | null
}

const columns = `k.id, k.user_id as "userId", (k.user_id is null or m.user_id is not null) as "hasOwner", k.workspace_id as "workspaceId",
     k.name, k.prefix, k.scope, k.tier, k.rpm_limit as "rpmLimit", k.daily_limit as "dailyLimit", k.enabled,
     k.disabled_reason as "disabledReason", k.lifecycle_pin as "lifecyclePin", k.inactivity_notice_at as "noticeAt",
     k.expires_at as "expiresAt", k.revoked_at as "revokedAt", k.last_used_at as "lastUsedAt", k.created_at as "createdAt",
     k.rotated_at as "rotatedAt", k.previous_until as "previousUntil", k.allowed_models as "allowedModels",
     k.allowed_providers as "allowedProviders", k.max_cost_uinr as "maxCostUinr", k.max_output_tokens as "maxOutputTokens",
     k.max_concurrency as "maxConcurrency", k.tpm_limit as "tpmLimit", k.allowed_tools as "allowedTools", k.run_caps as "runCaps"`
const withOwner = `left join org_members m on m.org_id = k.org_id and m.user_id = k.user_id and m.status = 'active'`

/** A key of a page. */
export interface ListedKeyRow extends ListedKey, Walked {
  /** The name as the database compares it. */
  readonly sortName: string
}

type ListParams = [
  orgId: number,
  /** A part of the name, an id, or the start of the key. */
  text: string | null,
  state: KeyState | null,
  ownerUser: number | null,
  now: Date,
  /** False: only revoked keys. */
  isActive: boolean,
  /** The value and the id after which the page begins, as texts. */
  position: readonly string[],
  scanMax: number,
  limit: number,
  maxBytes: number,
]

interface Order {
  /** The last columns of the index that the order walks on. */
  readonly keys: string
  readonly order: string
  /** The place of the row after which the page begins. */
  readonly after: string
}

const position = '($7::text[])'
const lastUsed = `coalesce(t.last_used_at, '-infinity'::timestamptz)`
const orders: Readonly<Record<'created' | 'name' | 'last_used', Order>> = {
  created: {
    keys: 't.id, (t.revoked_at is null) as is_active',
    order: 'is_active desc, id desc',
    after: `((t.revoked_at is null), t.id) < ($6::boolean, ${position}[2]::int)`,
  },
  name: {
    keys: 't.id, (t.revoked_at is not null) as is_revoked, (lower(t.name) collate "C") as sort_name',
    order: 'is_revoked, sort_name, id',
    after: `((t.revoked_at is not null), (lower(t.name) collate "C"), t.id) > (not $6::boolean, ${position}[1], ${position}[2]::int)`,
  },
  last_used: {
    keys: `t.id, (t.revoked_at is null) as is_active, ${lastUsed} as used_at`,
    order: 'is_active desc, used_at desc, id desc',
    after: `((t.revoked_at is null), ${lastUsed}, t.id) < ($6::boolean, ${position}[1]::timestamptz, ${position}[2]::int)`,
  },
}
const groups = {
  created: '(t.revoked_at is null) between $6::boolean and $6::boolean',
  name: '(t.revoked_at is not null) between (not $6::boolean) and (not $6::boolean)',
  last_used: '(t.revoked_at is null) between $6::boolean and $6::boolean',
} as const

/** The state of a key, as `stateOf` of the views has it. */
const stateOfKey = `case when t.revoked_at is not null then 'revoked'
       when t.user_id is not null and not exists (select from org_members o where o.org_id = t.org_id and o.user_id = t.user_id and o.status = 'active')
         then 'owner_left'
       when t.expires_at <= $5::timestamptz then 'expired'
       when not t.enabled then case t.disabled_reason when 'inactivity' then 'disabled_inactive' else 'disabled' end
       when t.inactivity_notice_at is null then 'active' else 'notice' end`
/** The start of a key counts from its third random character on. Otherwise a short word would find keys whose names do not contain it. */
const filter = `($2::text is null or strpos(lower(t.name), lower($2::text)) > 0 or t.id::text = $2::text
       or (length($2::text) >= 6 and left(t.prefix, length($2::text)) = $2::text))
     and ($4::int is null or t.user_id = $4::int) and ($3::text is null or ${stateOfKey} = $3::text)`

const listOf = (sort: keyof typeof orders): Statement<ListParams, ListedKeyRow> =>
  statement<ListParams, ListedKeyRow>(
    `keys.list_by_${sort}`,
    `${walkedPage({
      table: 'api_keys',
      where: `${groups[sort]} and ${orders[sort].after}`,
      keys: orders[sort].keys,
      order: orders[sort].order,
      filter,
      bytes: jsonBytes('t.name', 't.allowed_models', 't.allowed_providers', 't.allowed_tools'),
      scanMax: '$8::int',
      limit: '$9::int',
      maxBytes: '$10::int',
    })}
   select ${columns}, lower(k.name) as "sortName", ${walkedColumns} from shown s join api_keys k on k.org_id = $1::int and k.id = s.id ${withOwner} order by s.place`,
  )

/** Return a page of keys in each order, with one key more than the page has. */
export const lists: Readonly<Record<keyof typeof orders, Statement<ListParams, ListedKeyRow>>> = {
  created: listOf('created'),
  name: listOf('name'),
  last_used: listOf('last_used'),
}

/** Returns one key, revoked or not. */
export const findKey = statement<[orgId: number, keyId: number], ListedKey>(
  'keys.find',
  `select ${columns} from api_keys k ${withOwner} where k.org_id = $1::int and k.id = $2::int`,
)
