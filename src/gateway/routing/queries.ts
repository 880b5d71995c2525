import { statement } from '../../platform/db/db.ts'

/** A step of a chain as it is stored and shown. */
export interface StoredStep {
  readonly model: string
  readonly provider?: string
}

export interface ChainRow {
  readonly modelId: string
  readonly steps: readonly StoredStep[]
}

export const listChains = statement<[orgId: number], ChainRow>(
  'routing.list_chains',
  `select model_id as "modelId", steps from chains where org_id = $1::int order by model_id`,
)

export const findChain = statement<[orgId: number, modelId: string], ChainRow>(
  'routing.find_chain',
  `select model_id as "modelId", steps from chains where org_id = $1::int and model_id = $2::text`,
)

export const saveChain = statement<[orgId: number, modelId: string, steps: string, userId: number | null, now: Date]>(
  'routing.save_chain',
  `insert into chains (org_id, model_id, steps, updated_by, updated_at)
   values ($1::int, $2::text, $3::jsonb, $4::int, $5::timestamptz)
   on conflict (org_id, model_id) do update
     set steps = excluded.steps, updated_by = excluded.updated_by, updated_at = excluded.updated_at`,
)

export const deleteChain = statement<[orgId: number, modelId: string], { modelId: string }>(
  'routing.delete_chain',
  `delete from chains where org_id = $1::int and model_id = $2::text returning model_id as "modelId"`,
)
