import { z } from 'zod'
import { endpointOf } from '../../../platform/endpoint.ts'
import { ownRunCapsShape } from '../../../platform/security/run-caps.ts'
import { searchText } from '../../../platform/values/list-params.ts'
import { inrFromUinr } from '../../../platform/values/money.ts'
import { int4Max } from '../../../platform/values/row-id.ts'
import { whole } from '../activity/activity-parameters.ts'
import type { RunCapChanges } from './caps/run-cap-changes.ts'
import type { RunEnds } from './run-ends.ts'
import type { RunRow, RunSums } from './run-queries.ts'
import type { Runs, WholeRun } from './runs.ts'

const row = endpointOf<{ runs: Runs; runEnds: RunEnds; runCaps: RunCapChanges }>()

const pageMax = 200
const pageDefault = 50
/** A run without a call for so long is shown as idle. It is a label: the next call belongs to the run all the same. */
const idleMs = 30 * 60_000

const figures = {
  calls: z.int(),
  errors: z.int(),
  prompt_tokens: z.int(),
  completion_tokens: z.int(),
  cached_tokens: z.int().describe('Part of prompt_tokens that providers read from their caches.'),
  cached_share: z.number().nullable().describe('cached_tokens divided by prompt_tokens; null: no prompt tokens.'),
  cost_inr: z.number(),
  value_inr: z.number(),
}

const runStates = ['active', 'idle', 'held', 'ended'] as const

const runView = z.object({
  run_id: z.string().describe('As the calls name it. (others): the calls of further runs of a day with 100,000 runs.'),
  agent_id: z.int().nullable().describe('The agent that the run belongs to: the one at the top of its family.'),
  agent_name: z.string().nullable(),
  key_id: z.int().nullable().describe('The key that the run belongs to, when its calls name no registered agent.'),
  key_name: z.string().nullable(),
  state: z
    .enum(runStates)
    .describe(
      'idle: no call for 30 minutes. The next call belongs to the run all the same. held: a cap is reached, and a higher one lets the run go on. ended: its calls are refused, or its agent is revoked.',
    ),
  max_cost_inr: z.number().nullable().describe('The caps of the run; null = none.'),
  max_calls: z.int().nullable(),
  max_minutes: z.int().nullable(),
  max_subagents: z.int().nullable(),
  tags: z.record(z.string(), z.string()).describe('Of each key, the first value that a call gave in x-br-tags.'),
  increase_inr: z.number().optional().describe('What a person has granted beside max_cost_inr. Absent when nothing is.'),
  increase_calls: z.int().optional().describe('What a person has granted beside max_calls.'),
  increase_until: z.string().optional().describe('The end of the increase, or of the later one of both.'),
  ended_at: z.string().nullable().describe('Null: nobody ended the run itself.'),
  ended_by: z.object({ kind: z.enum(['person', 'key']), id: z.int() }).nullable(),
  first_at: z.string().describe('Admission of the first call, ISO 8601, UTC.'),
  last_at: z.string().describe('Admission of the last call that has ended.'),
  ...figures,
})

const wholeRunView = runView.extend({
  by_model: z.array(z.object({ model: z.string(), ...figures })).describe('(others): pairs of agent and model beyond 200.'),
  by_agent: z
    .array(z.object({ agent_id: z.int().nullable(), agent_name: z.string().nullable(), ...figures }))
    .describe('The agents of the family; null: calls without a registered agent.'),
  by_subagent: z
    .array(z.object({ subagent: z.string().nullable(), ...figures }))
    .describe('The sub-agents that the client names; null: the main agent. Empty when it names none. (others): sub-agents beyond 200.'),
})

function figuresOf(sums: RunSums) {
  const prompt = Number(sums.promptTokens)
  const cached = Number(sums.cachedTokens)
  return {
    calls: Number(sums.calls),
    errors: Number(sums.errors),
    prompt_tokens: prompt,
    completion_tokens: Number(sums.completionTokens),
    cached_tokens: cached,
    cached_share: prompt === 0 ? null : Math.round((cached / prompt) * 10_000) / 10_000,
    cost_inr: inrFromUinr(sums.costUinr),
    value_inr: inrFromUinr(sums.valueUinr),
  }
}

function stateOf(run: RunRow, nowMs: number): z.output<typeof runView>['state'] {
  const { endedAt, isRevoked, lastAt } = run
  if (endedAt !== null || isRevoked) return 'ended'
  if (isHeld(run, nowMs)) return 'held'
  return nowMs - lastAt.getTime() < idleMs ? 'active' : 'idle'
}

function isHeld({ costCapUinr, callsCap, moreUinr, moreCalls, minutesCap, valueUinr, calls, firstAt }: RunRow, nowMs: number): boolean {
  if (costCapUinr !== null && valueUinr >= costCapUinr + (moreUinr ?? 0n)) return true
  if (callsCap !== null && calls >= callsCap + (moreCalls ?? 0n)) return true
  return minutesCap !== null && nowMs >= firstAt.getTime() + minutesCap * 60_000
}

function endedBy(user: number | null, key: number | null): z.output<typeof runView>['ended_by'] {
  if (user !== null) return { kind: 'person', id: user }
  return key === null ? null : { kind: 'key', id: key }
}

function viewOf(run: RunRow, nowMs: number): z.output<typeof runView> {
  const { ownerKind, ownerId, ownerName } = run
  return {
    run_id: run.runId,
    agent_id: ownerKind === 'agent' ? ownerId : null,
    agent_name: ownerKind === 'agent' ? ownerName : null,
    key_id: ownerKind === 'key' && ownerId !== 0 ? ownerId : null,
    key_name: ownerKind === 'key' ? ownerName : null,
    state: stateOf(run, nowMs),
    max_cost_inr: run.costCapUinr === null ? null : inrFromUinr(run.costCapUinr),
    max_calls: run.callsCap === null ? null : Number(run.callsCap),
    max_minutes: run.minutesCap,
    max_subagents: run.subagentsCap,
    tags: run.tags ?? {},
    ...(run.moreUinr === null ? {} : { increase_inr: inrFromUinr(run.moreUinr) }),
    ...(run.moreCalls === null ? {} : { increase_calls: Number(run.moreCalls) }),
    ...(run.moreUntil === null ? {} : { increase_until: run.moreUntil.toISOString() }),
    ended_at: run.endedAt?.toISOString() ?? null,
    ended_by: endedBy(run.endedByUser, run.endedByKey),
    first_at: run.firstAt.toISOString(),
    last_at: run.lastAt.toISOString(),
    ...figuresOf(run),
  }
}

function wholeViewOf({ run, byModel, byAgent, bySubagent }: WholeRun, nowMs: number): z.output<typeof wholeRunView> {
  return {
    ...viewOf(run, nowMs),
    by_model: byModel.map(part => ({ model: part.model, ...figuresOf(part) })),
    by_agent: byAgent.map(part => ({ agent_id: part.agentId === 0 ? null : part.agentId, agent_name: part.agentName, ...figuresOf(part) })),
    by_subagent: bySubagent.map(part => ({ subagent: part.name, ...figuresOf(part) })),
  }
}

const id = whole.min(1).max(int4Max)
const owner = {
  agent_id: id.optional().describe('Only runs of the family of this agent.'),
  key_id: id.optional().describe('Only runs of this key, whose calls name no registered agent.'),
}

export const runEndpoints = {
  listRuns: row({
    at: 'GET /v1/me/runs',
    twin: { at: 'GET /me/runs', auth: 'session', access: {} },
    auth: 'key',
    access: { agentScope: 'usage:read' },
    tag: 'usage',
    summary: 'The runs of the organisation: calls, tokens and rupees of each job. The runs with the latest calls come first.',
    input: {
      query: z.object({
        ...owner,
        from: z.string().optional().describe('IST day, YYYY-MM-DD. Only runs with a call on this day or later.'),
        tag: z.string().max(200).optional().describe('Only runs with this tag, as key=value.'),
        q: searchText('A part of the id of the run, in upper or lower case.'),
        state: z.enum(runStates).optional(),
        limit: whole.min(1).max(pageMax).optional().describe(`Runs of a page, at most ${pageMax}. Default: ${pageDefault}.`),
        cursor: z.string().optional().describe('next_cursor of the page before.'),
      }),
    },
    output: z.object({ runs: z.array(runView), next_cursor: z.string().nullable().describe('Null after the last page.') }),
    errors: ['bad_request', 'database_unavailable'],
    async handle({ runs }, { query }, { principal }) {
      const { limit = pageDefault, agent_id, key_id, from, tag, cursor, q, state } = query
      const nowMs = runs.nowMs()
      const words = q?.toLowerCase()
      const isWanted = (run: RunRow): boolean =>
        (words === undefined || run.runId.toLowerCase().includes(words)) && (state === undefined || stateOf(run, nowMs) === state)
      const filter = { agentId: agent_id, keyId: key_id, from, tag, cursor }
      const { rows, nextCursor } = await runs.list(principal.orgId, filter, limit, words === undefined && state === undefined ? undefined : isWanted)
      return { runs: rows.map(each => viewOf(each, nowMs)), next_cursor: nextCursor }
    },
  }),

  runTags: row({
    at: 'GET /v1/me/run-tags/{key}',
    twin: { at: 'GET /me/run-tags/{key}', auth: 'session', access: {} },
    auth: 'key',
    access: { agentScope: 'usage:read' },
    tag: 'usage',
    summary: 'What the runs of at most 31 days used, by the value of a tag. A run counts on the day of its last call, so the values add up to all runs.',
    input: {
      path: z.object({ key: z.string().describe('The key of the tag, such as pr.') }),
      query: z.object({
        from: z.string().optional().describe('First IST day, YYYY-MM-DD. Default: 30 days before the last.'),
        to: z.string().optional().describe('Last IST day; included. Default: today.'),
      }),
    },
    output: z.object({
      key: z.string(),
      from: z.string(),
      to: z.string(),
      values: z
        .array(z.object({ value: z.string().describe('(none): runs without the tag. (others): values beyond 200.'), runs: z.int(), ...figures }))
        .describe('The dearest first.'),
    }),
    errors: ['bad_request', 'database_unavailable'],
    async handle({ runs }, { path, query }, { principal }) {
      const { from, to, rows } = await runs.byTag(principal.orgId, path.key, query)
      return { key: path.key, from, to, values: rows.map(of => ({ value: of.value, runs: Number(of.runs), ...figuresOf(of) })) }
    },
  }),

  getRun: row({
    at: 'GET /v1/me/runs/{id}',
    twin: { at: 'GET /me/runs/{id}', auth: 'session', access: {} },
    auth: 'key',
    access: { agentScope: 'usage:read' },
    tag: 'usage',
    summary: 'One run with its sums by model and by agent. Without agent_id and key_id, it is the run of the caller, or the only run with this id.',
    input: { path: z.object({ id: z.string().describe('The id that the calls of the run name.') }), query: z.object(owner) },
    output: wholeRunView,
    errors: ['bad_request', 'not_found', 'database_unavailable'],
    async handle({ runs }, { path, query }, { principal }) {
      return wholeViewOf(await runs.find(principal, path.id, { agentId: query.agent_id, keyId: query.key_id }), runs.nowMs())
    },
  }),

  changeRun: row({
    at: 'PATCH /v1/me/runs/{id}',
    twin: { at: 'PATCH /me/runs/{id}', auth: 'session', access: {} },
    auth: 'key',
    access: { scope: 'full' },
    tag: 'usage',
    summary:
      'Gives a run caps of its own, which come before those of its agent or key. A run that a cap holds goes on when the cap is higher; its sums stay. Every full key may lower a cap, and those who may loosen the limits of the agent or key may raise it.',
    input: { path: z.object({ id: z.string().describe('The id that the calls of the run name.') }), query: z.object(owner), body: ownRunCapsShape },
    output: runView.extend({ ok: z.literal(true) }),
    errors: ['bad_request', 'forbidden', 'not_found', 'cap', 'database_unavailable'],
    async handle({ runs, runCaps }, { path, query, body }, { principal }) {
      const ref = await runs.toEnd(principal, path.id, { agentId: query.agent_id, keyId: query.key_id })
      await runCaps.change(principal, ref, body)
      return { ok: true, ...viewOf(await runs.row(ref), runs.nowMs()) }
    },
  }),

  endRun: row({
    at: 'POST /v1/me/runs/{id}/end',
    twin: { at: 'POST /me/runs/{id}/end', auth: 'session', access: {} },
    auth: 'key',
    access: { scope: 'full' },
    tag: 'usage',
    summary:
      'Ends a run: its running calls are cut, and later ones are refused with run_ended. This cannot be undone. With agent_id or key_id the run need not have a call that has ended.',
    input: { path: z.object({ id: z.string().describe('The id that the calls of the run name.') }), query: z.object(owner) },
    output: z.object({
      ok: z.literal(true),
      run_id: z.string(),
      agent_id: z.int().nullable(),
      key_id: z.int().nullable(),
      state: z.literal('ended'),
      ended_at: z.string(),
      ended_by: z.object({ kind: z.enum(['person', 'key']), id: z.int() }).nullable(),
    }),
    errors: ['bad_request', 'forbidden', 'not_found', 'cap', 'database_unavailable'],
    async handle({ runs, runEnds }, { path, query }, { principal }) {
      const ref = await runs.toEnd(principal, path.id, { agentId: query.agent_id, keyId: query.key_id })
      const { endedAt, byUser, byKey } = await runEnds.end(principal, ref)
      return {
        ok: true,
        run_id: ref.runId,
        agent_id: ref.ownerKind === 'agent' ? ref.ownerId : null,
        key_id: ref.ownerKind === 'key' ? ref.ownerId : null,
        state: 'ended',
        ended_at: endedAt.toISOString(),
        ended_by: endedBy(byUser, byKey),
      }
    },
  }),
}
