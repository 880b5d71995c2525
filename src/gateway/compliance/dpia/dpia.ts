/** Creates the data-protection impact assessment of an organisation from sums, settings and the catalog. */

import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import type { Flushable } from '../../../platform/flushable.ts'
import type { CatalogSnapshot, ModelKind } from '../../catalog/model.ts'
import { modelsMax } from '../../usage/events/bounded-names.ts'
import { residencyOf } from '../attestation/attestation.ts'
import { add, countsOf, mixOf, none, type Sums, sumsOf } from '../processing-sums.ts'
import { type ProcessingRow, sumProcessing, sumTokenCounts } from '../queries.ts'
import { type KeepTimes, memoryOf, otherRecords, retentionOf, usageRecords } from '../retention-posture.ts'
import { iso, periodOf, windowOf } from '../window.ts'
import type { Dpia, Purpose } from './dpia-shape.ts'

/** Maximum number of agents and labels in an assessment, because labels are free text of callers. The project chose the number. */
const agentsMax = 1000

export interface DpiasDeps {
  readonly db: Db
  readonly clock: Clock
  readonly journal: Flushable
  readonly snapshot: () => CatalogSnapshot
  readonly org: (orgId: number) => Promise<{ readonly name: string; readonly retentionDays: number }>
  /** Returns the kind of store that holds the organisation's memory. Returns null when no store is configured. */
  readonly memoryStore: (orgId: number) => Promise<'s3' | 'folder' | null>
  readonly agentNames: (orgId: number, agentIds: readonly number[]) => Promise<ReadonlyMap<number, string>>
  /** The setting USAGE_KEEP_DAYS. */
  readonly usageKeepDays: number
  readonly keepTimes: KeepTimes
}

/** Creates data-protection impact assessments. */
export class Dpias {
  readonly #deps: DpiasDeps

  constructor(deps: DpiasDeps) {
    this.#deps = deps
  }

  /** Creates an assessment of the window. Throws `bad_request` for an invalid window. */
  async make(orgId: number, windowText: string, baseUrl: string): Promise<Dpia> {
    const { db, clock, journal, snapshot, org, memoryStore, usageKeepDays, keepTimes } = this.#deps
    const window = windowOf(windowText, clock.nowMs())
    await journal.flushNow()
    const rows = await db.many(sumProcessing, orgId, window.from, window.to, agentsMax, modelsMax)
    const counted = await db.many(sumTokenCounts, orgId, window.from, window.to, modelsMax)
    const { name, retentionDays } = await org(orgId)
    const store = await memoryStore(orgId)
    const routes = rows.filter(row => row.part === 'route')
    const total = routes.reduce((sum, row) => add(sum, sumsOf(row)), none)
    const madeAtMs = clock.nowMs()
    return {
      schema: 'brigade.dpia.v1',
      issuer: baseUrl,
      org_id: orgId,
      org_name: name,
      window: window.text,
      generated_at: iso(madeAtMs),
      period: periodOf(window, madeAtMs),
      total_requests: total.requests,
      residency: mixOf(total),
      ...processingOf(routes, snapshot()),
      token_counts: counted.map(row => ({ ...row, residency: residencyOf(row.residency), requests: Number(row.requests) })),
      content_retention: retentionOf(retentionDays),
      usage_records: usageRecords(usageKeepDays),
      memory: memoryOf(store),
      other_records: otherRecords(keepTimes),
      ...(await this.#agentsOf(
        orgId,
        rows.filter(row => row.part === 'agent'),
        total,
      )),
    }
  }

  async #agentsOf(
    orgId: number,
    rows: readonly ProcessingRow[],
    total: Sums,
  ): Promise<Pick<Dpia, 'agents' | 'agent_labels' | 'without_agent' | 'agents_capped' | 'unlisted_agent_requests'>> {
    const registered = rows.filter(row => row.agentId !== 0)
    const names = await this.#deps.agentNames(
      orgId,
      registered.map(row => row.agentId),
    )
    const labelled = rows.filter(row => row.agentId === 0 && row.agentLabel !== '')
    const rest = rows.filter(row => row.agentId === 0 && row.agentLabel === '').reduce((sum, row) => add(sum, sumsOf(row)), none)
    const listed = rows.reduce((sum, row) => sum + Number(row.requests), 0)
    const figuresOf = (sums: Sums) => ({ ...countsOf(sums), residency: mixOf(sums) })
    return {
      agents: registered.map(row => ({ agent_id: row.agentId, name: names.get(row.agentId) ?? null, ...figuresOf(sumsOf(row)) })),
      agent_labels: labelled.map(row => ({ label: row.agentLabel, ...figuresOf(sumsOf(row)) })),
      without_agent: figuresOf(rest),
      agents_capped: rows.length === agentsMax && listed < total.requests,
      unlisted_agent_requests: Math.max(0, total.requests - listed),
    }
  }
}

/** Returns the purposes, models, providers and processing log. All of them come from the same rows. */
function processingOf(routes: readonly ProcessingRow[], { models, providers }: CatalogSnapshot): Pick<Dpia, 'purposes' | 'models' | 'providers' | 'audit_log'> {
  const opennessOf = (model: string) => models.get(model)?.openness ?? ('unknown' as const)
  const purposeOf = (model: string): Purpose => purposes[models.get(model)?.kind ?? 'virtual']
  const byModel = grouped(routes, row => row.model)
  const byPurpose = grouped(routes, row => purposeOf(row.model))
  return {
    purposes: byPurpose.map(({ name, sums, rows }) => ({
      purpose: purposeOf(rows[0]?.model ?? name),
      requests: sums.requests,
      models: new Set(rows.map(row => row.model)).size,
    })),
    models: byModel.map(({ name, sums, rows }) => ({
      model: name,
      openness: opennessOf(name),
      purpose: purposeOf(name),
      providers: [...new Set(rows.map(row => row.provider))].sort(),
      ...countsOf(sums),
      residency: mixOf(sums),
    })),
    providers: grouped(routes, row => row.provider).map(({ name, sums }) => ({
      provider: name,
      name: providers.get(name)?.name ?? name,
      own: name.startsWith('byoe:'),
      ...countsOf(sums),
      residency: mixOf(sums),
    })),
    audit_log: routes.map(row => ({
      model: row.model,
      provider: row.provider,
      residency: residencyOf(row.residency),
      openness: opennessOf(row.model),
      purpose: purposeOf(row.model),
      own_key: row.byok,
      ...countsOf(sumsOf(row)),
      errors: Number(row.errors),
      first_day: row.firstDay,
      last_day: row.lastDay,
    })),
  }
}

const purposes: Readonly<Record<ModelKind, Purpose>> = {
  chat: 'text generation',
  embedding: 'embeddings',
  image: 'image generation',
  transcription: 'transcription',
  speech: 'speech',
  rerank: 'ranking',
  moderation: 'moderation',
  // A model that is no longer in the catalog has this purpose too.
  virtual: 'unknown',
}

/** Groups rows by name. The name with the most requests comes first. */
function grouped(rows: readonly ProcessingRow[], nameOf: (row: ProcessingRow) => string): { name: string; sums: Sums; rows: ProcessingRow[] }[] {
  const groups = new Map<string, { name: string; sums: Sums; rows: ProcessingRow[] }>()
  for (const row of rows) {
    const name = nameOf(row)
    const group = groups.get(name) ?? { name, sums: none, rows: [] }
    group.sums = add(group.sums, sumsOf(row))
    group.rows.push(row)
    groups.set(name, group)
  }
  return [...groups.values()].sort((a, b) => b.sums.requests - a.sums.requests || (a.name < b.name ? -1 : 1))
}
