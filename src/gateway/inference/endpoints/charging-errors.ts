import { type ErrorName, planningErrors } from '../../../platform/errors.ts'

/** The errors that every charging call can answer with, beside its own input errors. */
export const charging: readonly ErrorName[] = [
  ...planningErrors,
  'idempotency_mismatch',
  'idempotency_replayed',
  'idempotency_in_progress',
  'call_cap_exceeded',
  'run_ended',
  'daily_limit_reached',
  'trial_limit_reached',
  'concurrency_limit_reached',
  'budget_exceeded',
  'budget_held',
  'agent_budget_exceeded',
  'agent_budget_held',
  'credits_held',
  'all_routes_failed',
  'reply_too_large',
  'reply_not_translated',
  'provider_unavailable_billing',
  'database_unavailable',
  'journal_full',
]
