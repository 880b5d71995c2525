/** Batches as clients of both formats read them. */
import type { BatchRow } from './batch-queries.ts'
import { seconds } from './files.ts'

/** Returns a batch in OpenAI's format. */
export function openaiView(row: BatchRow): object {
  const { status, settledAt, cancelAskedAt } = row
  const at = (wanted: string): number | null => (settledAt !== null && status === wanted ? seconds(settledAt) : null)
  return {
    id: row.id,
    object: 'batch',
    endpoint: row.endpoint,
    model: row.model,
    errors: null,
    input_file_id: row.inputFileId,
    completion_window: '24h',
    status: settledAt === null && cancelAskedAt !== null ? 'cancelling' : status,
    output_file_id: row.outputFileId,
    error_file_id: row.errorFileId,
    created_at: seconds(row.admittedAt),
    in_progress_at: row.beganAt === null ? null : seconds(row.beganAt),
    expires_at: seconds(row.expiresAt),
    finalizing_at: null,
    completed_at: at('completed'),
    failed_at: at('failed'),
    expired_at: at('expired'),
    cancelling_at: cancelAskedAt === null ? null : seconds(cancelAskedAt),
    cancelled_at: at('cancelled'),
    request_counts: { total: row.lines, completed: row.completed, failed: row.failed },
    metadata: null,
  }
}

/** Returns a batch in Anthropic's format. */
export function anthropicView(row: BatchRow, baseUrl: string): object {
  const { settledAt, cancelAskedAt, completed, failed, lines } = row
  const isEnded = settledAt !== null
  return {
    id: row.id,
    type: 'message_batch',
    processing_status: isEnded ? 'ended' : cancelAskedAt === null ? 'in_progress' : 'canceling',
    request_counts: {
      processing: isEnded ? 0 : Math.max(0, lines - completed - failed),
      succeeded: completed,
      errored: cancelAskedAt === null ? failed : 0,
      canceled: cancelAskedAt === null ? 0 : failed,
      expired: 0,
    },
    created_at: row.admittedAt.toISOString(),
    expires_at: row.expiresAt.toISOString(),
    ended_at: settledAt?.toISOString() ?? null,
    archived_at: null,
    cancel_initiated_at: cancelAskedAt?.toISOString() ?? null,
    results_url: isEnded && completed + failed > 0 ? `${baseUrl}/v1/messages/batches/${row.id}/results` : null,
  }
}
