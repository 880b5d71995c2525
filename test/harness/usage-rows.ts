import { statement } from '../../src/platform/db/db.ts'
import type { TestApp } from './app.ts'

export interface UsageRow {
  readonly kind: string
  readonly model: string
  readonly provider: string
  readonly agentId: number | null
  readonly agentLabel: string | null
  readonly status: number
  readonly outcome: string
  readonly estimated: boolean
  readonly byok: boolean
  readonly promptTokens: bigint
  readonly completionTokens: bigint
  readonly images: number
  readonly audioSeconds: number
  readonly characters: bigint
  readonly searches: number
  readonly savedUinr: bigint | null
  readonly valueUinr: bigint
  readonly costUinr: bigint
}

const lastRows = statement<[count: number], UsageRow>(
  'test.last_usage_rows',
  `select kind, model, provider, agent_id as "agentId", agent_label as "agentLabel", status, outcome, estimated, byok, prompt_tokens as "promptTokens", completion_tokens as "completionTokens", images,
     audio_seconds as "audioSeconds", characters, searches, saved_uinr as "savedUinr", value_uinr as "valueUinr", cost_uinr as "costUinr"
   from usage_events order by id desc limit $1::int`,
)

/** Returns the latest usage rows, newest first. */
export async function usageRows(app: TestApp, count = 1): Promise<UsageRow[]> {
  await app.gateway.app.limits.flushNow()
  return app.db.many(lastRows, count)
}
