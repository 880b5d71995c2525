/** The shapes that the endpoints of agents share. */
import { z } from 'zod'
import { allowListMaxBytes, isShortList } from '../gateway/keys/key-rules.ts'
import { isRunId } from '../gateway/wire/runs/run-id.ts'
import { agentScopes } from '../platform/security/principal.ts'
import { runCapsShape, runCapsView } from '../platform/security/run-caps.ts'
import { toolPattern, toolPatternMaxChars } from '../platform/security/tool-patterns.ts'
import { int4Max, rowId } from '../platform/values/row-id.ts'
import { noAgent } from './tokens/token-refusal.ts'

/** An agent in a reply. */
export const agentView = z.object({
  id: z.int(),
  name: z.string(),
  status: z.enum(['active', 'paused', 'revoked']),
  parent_id: z.int().nullable().describe('The agent that made it; null: a person or program with an API key did.'),
  depth: z.int().min(0).max(3).describe('Number of agents above it in its family.'),
  monthly_budget_inr: z.number().nullable().describe('Monthly limit in rupees; null = none.'),
  spend_month_inr: z.number().describe('Usage value of the running month (IST) in rupees.'),
  held_inr: z.number().describe('Held by its running calls, and slices that processes have not used yet.'),
  in_doubt_inr: z.number().describe('Held by processes that may be dead.'),
  may_delegate: z.boolean().describe('Whether the agent may make child agents of its own.'),
  allowed_models: z.array(z.string()).nullable(),
  allowed_providers: z.array(z.string()).nullable(),
  max_cost_inr_per_call: z.number().nullable(),
  max_output_tokens: z.int().nullable(),
  max_concurrency: z.int().nullable(),
  tpm_limit: z.int().nullable(),
  run: runCapsView.nullable().describe('Caps of each of its runs; null = none.'),
  allowed_tools: z.array(z.string()).nullable().describe('Tools of MCP servers that its calls may use; null or empty = none.'),
  active_children: z.int().describe('Number of its children that are not revoked.'),
  owner_uid: z.int().nullable().describe('The member who answers for it; null: nobody, so owners and admins do.'),
  owner_name: z.string().nullable().describe('Null when the owner is no member any more.'),
  created_by: z
    .object({ kind: z.enum(['person', 'key', 'agent']), id: z.int().describe('Of the user, the key or the agent.') })
    .nullable()
    .describe('A signed-in person, an API key, or the agent above it.'),
  playground: z.boolean().describe('True: the agent of a person for the playground. Only that person gets tokens of it.'),
  last_call_at: z.string().nullable().describe('End of its last call, to within ten seconds; null: none yet.'),
  created_at: z.string().describe('ISO 8601, UTC.'),
})

/** An agent after a change. */
export const changedAgent = agentView.extend({ ok: z.literal(true) })

/** Maximum number of models or providers in one rule, and the maximum length of an id. */
const idsMax = 100
const idLengthMax = 200
const concurrencyMax = 100_000
/** The smallest and the largest allowed cap, in rupees, on the cost of one call. Every amount within these bounds converts between rupees and micro-rupees without loss. */
const costInrMin = 0.000001
const costInrMax = 1_000_000_000

const allowed = z
  .array(
    z
      .string()
      .trim()
      .min(1)
      .max(idLengthMax)
      .regex(/^\P{Cc}*$/u, 'must not hold control characters'),
  )
  .min(1)
  .max(idsMax)
  .refine(isShortList, `at most ${allowListMaxBytes} bytes together`)
  .nullable()
  .optional()
/** The rule about tools. An empty list allows none, as null does. */
const allowedTools = z
  .array(z.string().max(toolPatternMaxChars).regex(toolPattern, 'must be the public name of a tool, or slug__* for all tools of a server'))
  .max(idsMax)
  .nullable()
  .optional()
/** The rules that a request may set for an agent. A field that is left out does not change. Null removes the rule. */
export const paramsShape = {
  may_delegate: z.boolean().optional().describe('Let the agent make child agents. Default: false.'),
  allowed_models: allowed.describe('Model ids that its calls may use; null = all that its key may.'),
  allowed_providers: allowed.describe('Provider ids that may serve its calls, byoe:<slug> for servers of the organisation; null = all that its key may.'),
  max_cost_inr_per_call: z
    .number()
    .min(costInrMin)
    .max(costInrMax)
    .nullable()
    .optional()
    .describe('Most rupees that one call may cost in the worst case; null = no rule.'),
  max_output_tokens: z.int().min(1).max(int4Max).nullable().optional().describe('Most output tokens of one call, reasoning included; null = no rule.'),
  max_concurrency: z.int().min(1).max(concurrencyMax).nullable().optional().describe('Most concurrent calls, over all processes; null = no rule.'),
  tpm_limit: z
    .int()
    .min(1)
    .max(int4Max)
    .nullable()
    .optional()
    .describe('Most tokens a minute, over all processes: prompts without what came from a cache, and answers; null = no rule.'),
  allowed_tools: allowedTools.describe(
    'Tools of MCP servers that its calls may use: public names, and slug__* for all tools of a server. null or empty = none. Every agent above it must allow them too.',
  ),
}

/** The caps of runs that a request may set for an agent at the top of its family. */
export const runParamsShape = {
  run: runCapsShape.nullable().optional().describe('Caps of each run of the agent and its children; null removes them all.'),
}

/** The fields that a request may set for a token. */
export const tokenParamsShape = {
  scope: z
    .string()
    .max(200)
    .optional()
    .describe(`Some of "${agentScopes.join(' ')}", with spaces between them. Left out: all.`),
  ttl_s: z.int().min(1).optional().describe('Seconds until it ends, at most AGENT_TOKEN_TTL_S, which it is when left out.'),
}

/** The id of a run that a token fixes. */
export const runParam = z.string().refine(isRunId, 'must be 1 to 256 printable ASCII characters, without spaces at its ends').optional()

/** The minted token. */
export const mintedShape = {
  access_token: z.string(),
  token: z.string().describe('The same as access_token.'),
  token_type: z.literal('Bearer'),
  expires_in: z.int().describe('Seconds.'),
  expires_at: z.string().describe('ISO 8601, UTC.'),
  agent_id: z.int(),
  scope: z.string(),
}

/** The path parameters of endpoints about one agent. */
export const agentPath = z.object({ id: z.string().describe('Agent id.') })

/** Returns the id in the path. Throws `not_found` for a text that cannot be an id. */
export function idOf(path: { id: string }): number {
  const id = rowId(path.id)
  if (id === null) throw noAgent()
  return id
}
