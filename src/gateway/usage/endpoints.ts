import { z } from 'zod'
import { endpointOf, reply } from '../../platform/endpoint.ts'
import type { UsageReports } from './reports/reports.ts'

const row = endpointOf<{ usage: UsageReports }>()

const csvType = 'text/csv; charset=utf-8'
const span = {
  from: z.string().optional().describe('First IST day, YYYY-MM-DD. Default: the first of the month of `to`.'),
  to: z.string().optional().describe('Last IST day, YYYY-MM-DD; included. Default: today.'),
}

const totals = {
  requests: z.int(),
  prompt_tokens: z.int(),
  completion_tokens: z.int(),
  total_tokens: z.int(),
  cost_inr: z.number(),
  value_inr: z.number(),
  cost_uinr: z.int(),
  cached_tokens: z.int().describe('Part of the prompt tokens that providers read from their caches.'),
  cache_write_tokens: z.int().describe('Part of the prompt tokens that providers wrote to their caches.'),
}

export const usageEndpoints = {
  usage: row({
    at: 'GET /v1/usage',
    auth: 'key',
    access: { agentScope: 'usage:read' },
    tag: 'usage',
    summary:
      'Usage of the organisation in a span of IST days (default: this month to date): totals, by model, by agent. format=csv: a line a day, model and provider.',
    input: {
      query: z.object({
        ...span,
        format: z.enum(['json', 'csv']).optional().describe('csv: what GET /v1/usage.csv answers.'),
        group_by: z.enum(['day']).optional().describe('day: by_day as well.'),
      }),
    },
    output: z.object({
      from: z.string(),
      to: z.string(),
      totals: z.object(totals),
      by_model: z.array(z.object({ model: z.string(), ...totals })),
      by_agent: z.array(
        z.object({
          id: z.int().nullable(),
          name: z.string().nullable(),
          label: z.string().nullable().describe('(others): labels beyond a thousand.'),
          ...totals,
        }),
      ),
      by_day: z
        .array(z.object({ day: z.string(), ...totals }))
        .optional()
        .describe('With group_by=day: IST days on which there was any.'),
    }),
    errors: ['bad_request', 'database_unavailable'],
    async handle({ usage }, { query }, call) {
      const days = usage.span(query.from, query.to)
      if (query.format === 'csv') return reply.text(await usage.csv(call.principal.orgId, days), csvType)
      const { by_day, ...report } = await usage.report(call.principal.orgId, days)
      return query.group_by === 'day' ? { ...report, by_day } : report
    },
  }),

  usageCsv: row({
    at: 'GET /v1/usage.csv',
    auth: 'key',
    access: { agentScope: 'usage:read' },
    tag: 'usage',
    summary: 'The usage of the organisation in a span of IST days (default: this month to date) as CSV, a line a day, model and provider.',
    input: { query: z.object(span) },
    output: { media: 'text/csv' },
    errors: ['bad_request', 'database_unavailable'],
    async handle({ usage }, { query }, call) {
      const days = usage.span(query.from, query.to)
      const name = `usage-${days.from}-to-${days.to}.csv`
      return reply.text(await usage.csv(call.principal.orgId, days), csvType, { 'content-disposition': `attachment; filename="${name}"` })
    },
  }),
}
