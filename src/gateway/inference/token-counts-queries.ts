import { statement } from '../../platform/db.ts'

export const addTokenCount = statement<[orgId: number, day: string, model: string, provider: string, residency: string]>(
  'inference.add_token_count',
  `insert into token_counts as c (org_id, day, model, provider, residency, requests) values ($1::int, $2::date, $3::text, $4::text, $5::text, 1)
   on conflict (org_id, day, model, provider, residency) do update set requests = c.requests + 1`,
)
