import { statement } from '../../platform/db/db.ts'
import type { Place } from '../providers/provider.ts'

/** A saved key, without the key itself. */
export interface SavedKeyRow {
  readonly providerId: string
  readonly label: string | null
  readonly mask: string
  readonly alwaysUse: boolean
  readonly modelsCount: number
  readonly verifiedAt: Date | null
  readonly createdAt: Date
  readonly place: Place
}

export interface SealedKeyRow {
  readonly providerId: string
  readonly label: string | null
  readonly sealed: string
  readonly mask: string
  readonly alwaysUse: boolean
  readonly models: readonly string[]
  readonly verifiedAt: Date | null
  readonly place: Place
  /** The models that the organisation named when it saved the key. They are also in `models`. */
  readonly namedModels: readonly string[]
}

export const listSavedKeys = statement<[orgId: number], SavedKeyRow>(
  'byok.list_saved_keys',
  `select provider_id as "providerId", label, mask, always_use as "alwaysUse", cardinality(models) as "modelsCount", verified_at as "verifiedAt",
     created_at as "createdAt", place
   from provider_keys where org_id = $1::int order by provider_id`,
)

export const sealedKeys = statement<[orgId: number], SealedKeyRow>(
  'byok.sealed_keys',
  `select provider_id as "providerId", label, sealed, mask, always_use as "alwaysUse", models, verified_at as "verifiedAt", place,
     named_models as "namedModels"
   from provider_keys where org_id = $1::int`,
)

export const findSealedKey = statement<[orgId: number, providerId: string], SealedKeyRow>(
  'byok.find_sealed_key',
  `select provider_id as "providerId", label, sealed, mask, always_use as "alwaysUse", models, verified_at as "verifiedAt", place,
     named_models as "namedModels"
   from provider_keys where org_id = $1::int and provider_id = $2::text`,
)

/** Saves a key. The flags say which values were omitted. Omitted values do not change. */
export const saveKey = statement<
  [
    orgId: number,
    providerId: string,
    sealed: string,
    mask: string,
    models: readonly string[],
    verifiedAt: Date | null,
    now: Date,
    labelGiven: boolean,
    label: string | null,
    alwaysUse: boolean | null,
    place: string,
    namedModels: readonly string[],
  ],
  { label: string | null; alwaysUse: boolean }
>(
  'byok.save_key',
  `insert into provider_keys as k (org_id, provider_id, sealed, mask, models, verified_at, created_at, label, always_use, place, named_models)
   values ($1::int, $2::text, $3::text, $4::text, $5::text[], $6::timestamptz, $7::timestamptz, $9::text, coalesce($10::boolean, false), $11::jsonb,
     $12::text[])
   on conflict (org_id, provider_id) do update set
     sealed = excluded.sealed, mask = excluded.mask, models = excluded.models, verified_at = excluded.verified_at, place = excluded.place,
     named_models = excluded.named_models,
     label = case when $8::boolean then $9::text else k.label end, always_use = coalesce($10::boolean, k.always_use)
   returning label, always_use as "alwaysUse"`,
)

export const describeKey = statement<
  [orgId: number, providerId: string, labelGiven: boolean, label: string | null, alwaysUse: boolean | null],
  { label: string | null; mask: string; alwaysUse: boolean; verifiedAt: Date | null; modelsCount: number }
>(
  'byok.describe_key',
  `update provider_keys set label = case when $3::boolean then $4::text else label end, always_use = coalesce($5::boolean, always_use)
   where org_id = $1::int and provider_id = $2::text
   returning label, mask, always_use as "alwaysUse", verified_at as "verifiedAt", cardinality(models) as "modelsCount"`,
)

/** Updates the row only if it still has the key that was tested. */
export const confirmKey = statement<[orgId: number, providerId: string, sealed: string, models: readonly string[], verifiedAt: Date | null]>(
  'byok.confirm_key',
  `update provider_keys set models = $4::text[], verified_at = coalesce($5::timestamptz, verified_at)
   where org_id = $1::int and provider_id = $2::text and sealed = $3::text`,
)

export const deleteKey = statement<[orgId: number, providerId: string]>(
  'byok.delete_key',
  `delete from provider_keys where org_id = $1::int and provider_id = $2::text`,
)
