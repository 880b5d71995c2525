/** Writes a data-protection impact assessment as a report for people. */

import { indiaRule, markdownTable, markdownText, percent } from '../markdown.ts'
import type { Dpia, ResidencyMix } from './dpia-shape.ts'

/** Returns the report in Markdown. It has the facts of the JSON and no content of calls. */
export function dpiaReport(dpia: Dpia): string {
  return `${[
    '# Data-protection impact assessment',
    `Organisation ${markdownText(dpia.org_name)} (${dpia.org_id}) at ${markdownText(dpia.issuer)}. Window ${dpia.window}: the IST days ${dpia.period.from} to ` +
      `${dpia.period.to}. Made ${dpia.generated_at}. ${dpia.total_requests} requests.`,
    ...processingSections(dpia),
    '## Where data was processed',
    mixTable(dpia.residency),
    `${indiaRule} Providers whose place is not known are listed separately, and so are own servers that the organisation declares to be in India (declared): neither count as India.`,
    '## What is kept',
    `Content (${dpia.content_retention.mode === 'zero' ? 'zero retention' : `a window of ${dpia.content_retention.days} days`}). ${dpia.content_retention.stored} ` +
      `Where: ${dpia.content_retention.where} Readable by: ${dpia.content_retention.readable_by}`,
    `Usage records (${dpia.usage_records.kept_days} days). ${dpia.usage_records.stored}`,
    `Shared memory (${dpia.memory.store === null ? 'not configured' : `store: ${dpia.memory.store}`}). ${dpia.memory.stored}`,
    table(
      ['record', 'stored', 'kept'],
      dpia.other_records.map(({ what, stored, kept }) => [what, stored, kept]),
    ),
    '## Algorithmic audit log',
    table(
      ['model', 'provider', 'residency', 'openness', 'purpose', 'own key', 'requests', 'errors', 'tokens', 'first day', 'last day'],
      dpia.audit_log.map(row => [
        ...[row.model, row.provider, row.residency, row.openness, row.purpose, row.own_key ? 'yes' : 'no'],
        ...[row.requests, row.errors, row.total_tokens, row.first_day, row.last_day],
      ]),
    ),
    'Prompts that were sent out to have their tokens counted, beside the requests above:',
    table(
      ['model', 'provider', 'residency', 'prompts'],
      dpia.token_counts.map(row => [row.model, row.provider, row.residency, row.requests]),
    ),
    ...agentSections(dpia),
  ].join('\n\n')}\n`
}

function processingSections(dpia: Dpia): string[] {
  return [
    '## Purposes',
    table(
      ['purpose', 'models', 'requests'],
      dpia.purposes.map(row => [row.purpose, row.models, row.requests]),
    ),
    '## Models',
    table(
      ['model', 'purpose', 'openness', 'providers', 'requests', 'tokens', ...mixHeads],
      dpia.models.map(row => [row.model, row.purpose, row.openness, row.providers.join(' / '), row.requests, row.total_tokens, ...mixCells(row.residency)]),
    ),
    '## Providers',
    table(
      ['provider', 'name', 'run by', 'requests', 'tokens', ...mixHeads],
      dpia.providers.map(row => [
        row.provider,
        row.name,
        row.own ? 'the organisation' : 'the provider',
        row.requests,
        row.total_tokens,
        ...mixCells(row.residency),
      ]),
    ),
  ]
}

function agentSections(dpia: Dpia): string[] {
  const rest = dpia.without_agent
  return [
    '## Processing by agents',
    table(
      ['agent id', 'name', 'requests', 'tokens', ...mixHeads],
      dpia.agents.map(row => [row.agent_id, row.name ?? 'unknown', row.requests, row.total_tokens, ...mixCells(row.residency)]),
    ),
    'Labels of callers that name no registered agent:',
    table(
      ['label', 'requests', 'tokens', ...mixHeads],
      dpia.agent_labels.map(row => [row.label, row.requests, row.total_tokens, ...mixCells(row.residency)]),
    ),
    `${rest.requests} requests were made without an agent.${dpia.agents_capped ? ` ${dpia.unlisted_agent_requests} more are of agents and labels that are not listed.` : ''}`,
  ]
}

const mixHeads = ['India', 'global', 'unknown', 'declared']
const mixCells = ({ india, global, unknown, declared }: ResidencyMix): number[] => [india, global, unknown, declared].map(({ requests }) => requests)

const mixTable = ({ india, global, unknown, declared }: ResidencyMix): string =>
  markdownTable(
    ['', 'requests', 'share'],
    [
      ['in India', india.requests, percent(india.pct)],
      ['outside India', global.requests, percent(global.pct)],
      ['not known', unknown.requests, percent(unknown.pct)],
      ['declared', declared.requests, percent(declared.pct)],
    ],
  )

const table = (heads: readonly string[], rows: readonly (readonly (string | number)[])[]): string => (rows.length === 0 ? 'None.' : markdownTable(heads, rows))
