/** Query parameters of the endpoints of activity. */
import { z } from 'zod'
import { int4Max } from '../../../platform/values/row-id.ts'

export const whole = z.coerce.number().int()
const id = whole.min(1).max(int4Max)
/** PostgreSQL text cannot contain U+0000, so no stored name does. */
const name = z
  .string()
  .min(1)
  .max(300)
  .refine(text => !text.includes('\u0000'), 'holds the character U+0000, which no name has')

/** The filters of sums and of single calls. An id of another organisation matches nothing. */
export const callFilters = {
  model: name.optional().describe('Only this model id.'),
  provider: name.optional().describe('Only this provider id.'),
  key_id: z
    .union([z.literal('none').transform(() => 0), id])
    .optional()
    .describe('Only this key; none: only calls without a key.'),
  agent_id: id.optional().describe('Only this registered agent.'),
  uid: id.optional().describe('Only calls with keys of this person, and of their agents.'),
  workspace_id: id.optional().describe('Only calls with keys of this workspace.'),
}
