/** What is kept of calls, in words. These sentences are promises: they follow content-log.ts and record.ts. */
import type { Dpia } from './dpia-shape.ts'

/** What is kept of what was said, with a retention window of so many days. */
export function retentionOf(days: number): Dpia['content_retention'] {
  if (days === 0)
    return {
      mode: 'zero',
      days,
      stored: 'Nothing of what is said in a call: neither prompts nor answers.',
      where: 'Nowhere. Content passes through the memory of the gateway.',
      readable_by: 'Nobody.',
    }
  return {
    mode: 'window',
    days,
    stored: `Prompts and answers of calls, each for ${days} ${days === 1 ? 'day' : 'days'} from the call; they are deleted then, and at once when the window is made shorter.`,
    where: 'In the database of the gateway, encrypted with AES-256-GCM under its master key. Not in logs, usage records, webhooks or any endpoint.',
    readable_by: 'The operator of the gateway alone, a call at a time (brigade admin content), with a line in the audit trail of the organisation each time.',
  }
}

/** What is kept of every call, whatever is said in it. */
export function usageRecords(keptDays: number): Dpia['usage_records'] {
  return {
    kept_days: keptDays,
    stored:
      'Per call: time, request id, model, provider, residency, status, latency, tokens, cost, and the ids of organisation, person, key, workspace and agent or agent label. Never content. Sums by day are kept on.',
  }
}
