import { z } from 'zod'
import { endpointOf, type Reply, reply } from '../../platform/endpoint.ts'
import type { UsageReport, UsageReports } from './reports/reports.ts'
import { csvType } from './reports/usage-csv.ts'

const row = endpointOf<{ usage: UsageReports }>()

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

const reportQuery = z.object({
  ...span,
  format: z.enum(['json', 'csv']).optional().describe('csv: a line a day, model and provider.'),
  group_by: z.enum(['day']).optional().describe('day: by_day as well.'),
})
const csvQuery = z.object(span)

const report = z.object({
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
})
const reportSummary =
  'Usage of the organisation in a span of IST days (default: this month to date): totals, by model, by agent. format=csv: a line a day, model and provider.'
const csvSummary = 'The usage of the organisation in a span of IST days (default: this month to date) as CSV, a line a day, model and provider.'

/** The report for keys and for sessions. */
async function reportOf(usage: UsageReports, orgId: number, query: z.output<typeof reportQuery>): Promise<z.output<typeof report> | Reply> {
  const days = usage.span(query.from, query.to)
  if (query.format === 'csv') return reply.text(await usage.csv(orgId, days), csvType)
  const { by_day, ...others }: UsageReport = await usage.report(orgId, days)
  return query.group_by === 'day' ? { ...others, by_day } : others
}

/** The CSV for keys and for sessions. */
async function csvOf(usage: UsageReports, orgId: number, query: z.output<typeof csvQuery>): Promise<Reply> {
  const days = usage.span(query.from, query.to)
  const name = `usage-${days.from}-to-${days.to}.csv`
  return reply.text(await usage.csv(orgId, days), csvType, { 'content-disposition': `attachment; filename="${name}"` })
}

export const usageEndpoints = {
  usage: row({
    at: 'GET /v1/usage',
    auth: 'key',
    access: { agentScope: 'usage:read' },
    tag: 'usage',
    summary: reportSummary,
    input: { query: reportQuery },
    output: report,
    errors: ['bad_request', 'database_unavailable'],
    handle: ({ usage }, { query }, call) => reportOf(usage, call.principal.orgId, query),
  }),

  usageCsv: row({
    at: 'GET /v1/usage.csv',
    auth: 'key',
    access: { agentScope: 'usage:read' },
    tag: 'usage',
    summary: csvSummary,
    input: { query: csvQuery },
    output: { media: 'text/csv' },
    errors: ['bad_request', 'database_unavailable'],
    handle: ({ usage }, { query }, call) => csvOf(usage, call.principal.orgId, query),
  }),

  sessionUsage: row({
    at: 'GET /me/usage/report',
    auth: 'session',
    access: {},
    tag: 'usage',
    summary: reportSummary,
    input: { query: reportQuery },
    output: report,
    errors: ['bad_request', 'database_unavailable'],
    handle: ({ usage }, { query }, call) => reportOf(usage, call.principal.orgId, query),
  }),

  sessionUsageCsv: row({
    at: 'GET /me/usage.csv',
    auth: 'session',
    access: {},
    tag: 'usage',
    summary: csvSummary,
    input: { query: csvQuery },
    output: { media: 'text/csv' },
    errors: ['bad_request', 'database_unavailable'],
    handle: ({ usage }, { query }, call) => csvOf(usage, call.principal.orgId, query),
  }),
}
