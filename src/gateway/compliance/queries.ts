import { statement } from '../../platform/db/db.ts'
import { otherModels } from '../usage/events/bounded-names.ts'

export interface AttestedRow {
  readonly total: bigint
  readonly india: bigint
  readonly declared: bigint
  readonly unknown: bigint
  /** The number of prompts that were sent to a provider to have their tokens counted. `indiaCounts` is the number of those that stayed in India. */
  readonly counts: bigint
  readonly indiaCounts: bigint
  /** True when rows of single calls in the window were deleted by age. */
  readonly isThinned: boolean
  /** The model of one call. A window without calls has one row, and its model is null. */
  readonly model: string | null
  readonly provider: string
  readonly residency: string
  readonly at: Date
  readonly requestId: string
}

/** Versions before this one recorded `india` when an organisation declared it about its own server. Such a call counts as `declared`. */
const isIndia = "residency = 'india' and provider not like 'byoe:%'"
const isDeclared = "(residency = 'declared' or residency = 'india' and provider like 'byoe:%')"
const isUnknown = "residency not in ('india', 'declared', 'global')"
const isDistinct = `case when ${isDeclared} then 'declared' else residency end`

/** Reads the sums of the whole window and its newest calls, newest first. One statement reads one snapshot, so the sums and the calls cannot disagree. */
export const readAttested = statement<[orgId: number, from: string, to: string, evidenceMax: number], AttestedRow>(
  'compliance.read_attested',
  `select s.total as "total", s.india as "india", s.declared as "declared", s.unknown as "unknown",
     t.total as "counts", t.india as "indiaCounts",
     coalesce((select kept_from > $2::date from usage_retention), false) as "isThinned", e.model as "model", e.provider as "provider", e.residency as "residency",
     e.at as "at", e.request_id as "requestId"
   from (
     select coalesce(sum(requests), 0)::bigint as total, coalesce(sum(requests) filter (where ${isIndia}), 0)::bigint as india,
       coalesce(sum(requests) filter (where ${isDeclared}), 0)::bigint as declared, coalesce(sum(requests) filter (where ${isUnknown}), 0)::bigint as unknown
     from usage_days where org_id = $1::int and day between $2::date and $3::date
   ) as s
   cross join (
     select coalesce(sum(requests), 0)::bigint as total, coalesce(sum(requests) filter (where residency = 'india'), 0)::bigint as india
     from token_counts where org_id = $1::int and day between $2::date and $3::date
   ) as t
   left join (
     select day, id, model, provider, ${isDistinct} as residency, at, request_id from usage_events
     where org_id = $1::int and day between $2::date and $3::date order by day desc, id desc limit $4::int
   ) as e on true
   order by e.day desc, e.id desc`,
)

export interface ProcessingRow {
  /** 'route': a model at a provider. 'agent': a registered agent, a label from a header, or neither. */
  readonly part: 'route' | 'agent'
  readonly model: string
  readonly provider: string
  readonly residency: string
  readonly byok: boolean
  /** 0 when the row has no registered agent. */
  readonly agentId: number
  readonly agentLabel: string
  readonly requests: bigint
  readonly errors: bigint
  readonly promptTokens: bigint
  readonly completionTokens: bigint
  /** Parts of `requests` by residency: `india`, `declared` and `unknown`. */
  readonly india: bigint
  readonly declared: bigint
  readonly unknown: bigint
  /** First and last IST day of the window with requests. */
  readonly firstDay: string
  readonly lastDay: string
}

const figures = (table: 'with provider' | 'without'): string => {
  const [india, declared] = table === 'without' ? ["residency = 'india'", "residency = 'declared'"] : [isIndia, isDeclared]
  return `sum(requests)::bigint as requests, sum(errors)::bigint as errors, sum(prompt_tokens)::bigint as prompt_tokens,
       sum(completion_tokens)::bigint as completion_tokens, coalesce(sum(requests) filter (where ${india}), 0)::bigint as india,
       coalesce(sum(requests) filter (where ${declared}), 0)::bigint as declared, coalesce(sum(requests) filter (where ${isUnknown}), 0)::bigint as unknown,
       min(day) as first_day, max(day) as last_day`
}

/** Reads the processing of an organisation's data by route and by agent, most requests first. After `modelsMax` models, all others share one name. It is one statement, so that both have the same total. */
export const sumProcessing = statement<[orgId: number, from: string, to: string, agentsMax: number, modelsMax: number], ProcessingRow>(
  'compliance.sum_processing',
  `select part as "part", model as "model", provider as "provider", residency as "residency", byok as "byok", agent_id as "agentId",
     agent_label as "agentLabel", requests as "requests", errors as "errors", prompt_tokens as "promptTokens", completion_tokens as "completionTokens",
     india as "india", declared as "declared", unknown as "unknown", first_day as "firstDay", last_day as "lastDay"
   from (
     select 'route' as part, coalesce(top.model, '${otherModels}') as model, provider, ${isDistinct} as residency, byok, 0 as agent_id, '' as agent_label,
       ${figures('with provider')}
     from usage_days left join (
       select model from usage_days where org_id = $1::int and day between $2::date and $3::date group by model order by sum(requests) desc, model limit $5::int
     ) as top using (model)
     where org_id = $1::int and day between $2::date and $3::date group by coalesce(top.model, '${otherModels}'), provider, ${isDistinct}, byok
     union all
     (select 'agent', '', '', '', false, agent_id, agent_label, ${figures('without')}
     from usage_days_by_agent where org_id = $1::int and day between $2::date and $3::date group by agent_id, agent_label
     order by sum(requests) desc, agent_id, agent_label limit $4::int)
   ) as processing
   order by part, requests desc, model, provider, residency, byok, agent_id, agent_label`,
)

export interface TokenCountRow {
  readonly model: string
  readonly provider: string
  readonly residency: string
  readonly requests: bigint
}

/** Reads the prompts that went to a provider to have their tokens counted, most requests first. */
export const sumTokenCounts = statement<[orgId: number, from: string, to: string, modelsMax: number], TokenCountRow>(
  'compliance.sum_token_counts',
  `select coalesce(top.model, '${otherModels}') as "model", provider as "provider", residency as "residency", sum(requests)::bigint as "requests"
   from token_counts left join (
     select model from token_counts where org_id = $1::int and day between $2::date and $3::date group by model order by sum(requests) desc, model limit $4::int
   ) as top using (model)
   where org_id = $1::int and day between $2::date and $3::date group by 1, 2, 3 order by 4 desc, 1, 2, 3`,
)

export interface AttestationKeyRow {
  readonly keyId: string
  readonly publicKey: unknown
  readonly sealedPrivateKey: string
  readonly hmacKeyId: string
  readonly sealedHmacKey: string
}

const keyColumns = `key_id as "keyId", public_key as "publicKey", sealed_private_key as "sealedPrivateKey", hmac_key_id as "hmacKeyId",
     sealed_hmac_key as "sealedHmacKey"`

export const findCurrentKey = statement<[], AttestationKeyRow>(
  'attestation_keys.find_current',
  `select ${keyColumns} from attestation_keys where retired_at is null`,
)

export const findHmacKey = statement<[hmacKeyId: string], AttestationKeyRow>(
  'attestation_keys.find_hmac_key',
  `select ${keyColumns} from attestation_keys where hmac_key_id = $1::text`,
)

/** Returns the public parts of all keys, newest first. */
export const listPublicKeys = statement<[], { publicKey: unknown }>(
  'attestation_keys.list_public',
  `select public_key as "publicKey" from attestation_keys order by created_at desc, key_id`,
)

/** Inserts a key. It does nothing while another key is current. */
export const insertKey = statement<[keyId: string, publicKey: string, sealedPrivateKey: string, hmacKeyId: string, sealedHmacKey: string, createdAt: Date]>(
  'attestation_keys.insert_key',
  `insert into attestation_keys (key_id, public_key, sealed_private_key, hmac_key_id, sealed_hmac_key, created_at)
   values ($1::text, $2::jsonb, $3::text, $4::text, $5::text, $6::timestamptz) on conflict do nothing`,
)

export const retireCurrentKey = statement<[at: Date]>(
  'attestation_keys.retire_current',
  `update attestation_keys set retired_at = $1::timestamptz where retired_at is null`,
)
