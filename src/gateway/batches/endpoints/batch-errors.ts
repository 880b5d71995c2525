import { type ErrorName, planningErrors } from '../../../platform/errors.ts'

/** The errors of everything that reads a batch or a file. */
export const readingErrors: readonly ErrorName[] = ['bad_request', 'not_found', 'unavailable', 'all_routes_failed', 'database_unavailable']

/** The errors of everything that holds money for a batch, or checks its requests. */
export const batchErrors: readonly ErrorName[] = [
  ...planningErrors,
  'not_found',
  'forbidden',
  'unavailable',
  'unsupported_operation',
  'cap',
  'places_taken',
  'call_cap_exceeded',
  'run_ended',
  'run_required',
  'run_budget_exceeded',
  'run_calls_exceeded',
  'run_time_exceeded',
  'run_subagents_exceeded',
  'daily_limit_reached',
  'budget_exceeded',
  'budget_held',
  'agent_budget_exceeded',
  'agent_budget_held',
  'credits_held',
  'all_routes_failed',
  'database_unavailable',
]
