/** Schemas that the reports of the console share. */
import { z } from 'zod'

/** Sums of usage. */
export const figures = {
  requests: z.int(),
  errors: z.int().describe('Calls that failed. A call that a client gave up does not count.'),
  prompt_tokens: z.int(),
  completion_tokens: z.int(),
  tokens: z.int().describe('Prompt and completion.'),
  cost_inr: z.number().describe('What was charged. Calls on own provider keys cost 0.'),
  value_inr: z.number().describe('What the calls are worth at catalog prices; budgets count this.'),
}

/** A key in a list. */
export const namedKey = {
  key_id: z.int().nullable().describe('null: calls without a key.'),
  name: z.string().nullable(),
  revoked: z.boolean().nullable(),
}

/** The days of a report. */
export const daySpan = { from: z.string().describe('First IST day.'), to: z.string().describe('Last IST day, included.') }
