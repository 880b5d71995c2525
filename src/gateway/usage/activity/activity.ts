/** The activity report of an organisation for a span of IST days: usage by day, model, key and provider. */

import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import type { Flushable } from '../../../platform/flushable.ts'
import { inrFromUinr } from '../../../platform/values/money.ts'
import { dayModelsMax, modelsMax } from '../events/bounded-names.ts'
import { activitySpan, type DaySpan, weeksIn } from '../reports/usage-span.ts'
import { type Figures, figuresOf, sumOf } from '../reports/usage-totals.ts'
import { type ActivityKeyRow, type ActivityRow, findKeyName, listModels, sumActivity, sumActivityOfKey, topKeys, topKeysOfModel } from './activity-queries.ts'

/** Length of the top lists of models and keys. */
export const topMax = 20
/** Maximum number of keys that are offered as filters. They are the keys with the highest value of usage. */
const filterKeysMax = 1_000

export interface ActivityQuery {
  readonly from?: string | undefined
  readonly to?: string | undefined
  readonly model?: string | undefined
  /** 0 means calls without a key. */
  readonly keyId?: number | undefined
}

type WithByok = Figures & { byok_requests: number }
interface NamedKey {
  /** Null for calls without a key. */
  key_id: number | null
  name: string | null
  revoked: boolean | null
}

export interface ActivityReport {
  from: string
  to: string
  totals: WithByok
  days: (WithByok & { day: string; model: string })[]
  top_models: (WithByok & { model: string })[]
  top_keys: (Figures & NamedKey)[]
  model_providers: { model: string; providers: { provider: string; requests: number; tokens: number; cost_inr: number; value_inr: number }[] }[]
  models: string[]
  keys: NamedKey[]
}

export interface ActivityDeps {
  readonly db: Db
  readonly clock: Clock
  /** Writes the records that this process has settled to the database. */
  readonly journal: Flushable
}

/** Activity reports of one organisation. */
export class Activity {
  readonly #deps: ActivityDeps

  constructor(deps: ActivityDeps) {
    this.#deps = deps
  }

  /**
   * Returns usage by day and model, models and keys by value, and providers by model. Days, models and providers each add up to the totals.
   * After `dayModelsMax` models, all others share one name. `models` and `keys` ignore the filters of the query. Throws `bad_request`.
   */
  async report(orgId: number, query: ActivityQuery): Promise<ActivityReport> {
    const { clock, journal } = this.#deps
    const span = activitySpan(query.from, query.to, clock.nowMs())
    await journal.flushNow()
    const rows = await this.#sums(orgId, span, query)
    const days = rows.filter(row => row.day !== null)
    const models = rows.filter(row => row.day === null && row.provider === null)
    const providers = providersByModel(rows)
    const { keys, top, modelIds } = await this.#lists(orgId, span, query, models)
    return {
      from: span.from,
      to: span.to,
      totals: figuresWithByok(models),
      days: days.map(row => ({ day: row.day ?? '', model: row.model, ...figuresWithByok([row]) })),
      top_models: models.slice(0, topMax).map(row => ({ model: row.model, ...figuresWithByok([row]) })),
      top_keys: top.map(row => ({ ...namedKeyOf(row), ...figuresOf(row) })),
      model_providers: models.map(({ model }) => ({ model, providers: providers.get(model) ?? [] })),
      models: modelIds,
      keys: keys.map(namedKeyOf),
    }
  }

  #sums(orgId: number, { from, to }: DaySpan, { model: asked, keyId }: ActivityQuery): Promise<ActivityRow[]> {
    const { db } = this.#deps
    const model = asked ?? null
    return keyId === undefined
      ? db.many(sumActivity, orgId, from, to, model, dayModelsMax)
      : db.many(sumActivityOfKey, orgId, from, to, model, dayModelsMax, keyId)
  }

  /** Returns all keys and models of the span for the filters, and the top keys of the query. */
  async #lists(orgId: number, { from, to }: DaySpan, { model, keyId }: ActivityQuery, models: readonly ActivityRow[]) {
    const { db } = this.#deps
    const { headTo, tailFrom } = weeksIn({ from, to })
    const keys = await db.many(topKeys, orgId, from, headTo, tailFrom, to, filterKeysMax)
    const modelIds = (await db.many(listModels, orgId, from, to, modelsMax)).map(row => row.model)
    return { keys, modelIds, top: await this.#topKeys(orgId, { from, to }, { model, keyId }, models, keys) }
  }

  async #topKeys(
    orgId: number,
    { from, to }: DaySpan,
    { model, keyId }: ActivityQuery,
    models: readonly ActivityRow[],
    keys: readonly ActivityKeyRow[],
  ): Promise<readonly ActivityKeyRow[]> {
    if (keyId !== undefined) {
      // With a key as the filter, the sum over all models is the usage of that key.
      if (models.length === 0) return []
      const key = await this.#deps.db.maybe(findKeyName, orgId, keyId)
      return [{ ...sumOf(models), keyId: keyId === 0 ? null : keyId, name: key?.name ?? null, revoked: key?.revoked ?? null }]
    }
    if (model === undefined) return keys.slice(0, topMax)
    const { headTo, tailFrom } = weeksIn({ from, to })
    return this.#deps.db.many(topKeysOfModel, orgId, from, headTo, tailFrom, to, topMax, model)
  }
}

function figuresWithByok(rows: readonly ActivityRow[]): WithByok {
  return { ...figuresOf(sumOf(rows)), byok_requests: Number(rows.reduce((sum, row) => sum + row.byokRequests, 0n)) }
}

const namedKeyOf = ({ keyId, name, revoked }: ActivityKeyRow): NamedKey => ({ key_id: keyId, name, revoked })

type ProviderOfModel = ActivityReport['model_providers'][number]['providers'][number]

/** Returns the providers of each model, those with the highest value first. */
function providersByModel(rows: readonly ActivityRow[]): ReadonlyMap<string, ProviderOfModel[]> {
  const byModel = new Map<string, ProviderOfModel[]>()
  for (const row of rows) {
    if (row.provider === null) continue
    const tokens = Number(row.promptTokens + row.completionTokens)
    const money = { cost_inr: inrFromUinr(row.costUinr), value_inr: inrFromUinr(row.valueUinr) }
    const provider = { provider: row.provider, requests: Number(row.requests), tokens, ...money }
    const known = byModel.get(row.model)
    if (known === undefined) byModel.set(row.model, [provider])
    else known.push(provider)
  }
  return byModel
}
