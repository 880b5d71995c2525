/** The activity report of an organisation for a span of IST days: usage by day or hour, model, key, agent, member and provider, and latencies. */

import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import type { Flushable } from '../../../platform/flushable.ts'
import type { DisplayRate } from '../../../platform/display-rate.ts'
import { istDay } from '../../../platform/values/ist-time.ts'
import { dayModelsMax, modelsMax } from '../events/bounded-names.ts'
import { usageCsv } from '../reports/usage-csv.ts'
import { activitySpan, type DaySpan, weeksIn } from '../reports/usage-span.ts'
import { figuresOf, sumOf } from '../reports/usage-totals.ts'
import { type ActivityFilters, type ActivityGroup, checkEvents, checkHours, type EventRoom, mayReadEvents, sourceOf } from './activity-filters.ts'
import { type ActivityLatency, latencyOf } from './activity-latency.ts'
import { type ActivityKeyRow, findEventRoom, findKeyName, listModels, topKeys, topKeysOfEvents, topKeysOfModel } from './activity-queries.ts'
import { type ActivityReport, agentsOf, figuresWithByok, hourOf, membersOf, namedKeyOf, providersByModel } from './activity-shape.ts'
import { type ActivityAsk, type ActivityRow, eventParams, listActivityLines, sumActivity } from './activity-sum-queries.ts'

/** Length of the top lists of models and keys. */
export const topMax = 20
/** Maximum number of keys that are offered as filters. They are the keys with the highest value of usage. */
const filterKeysMax = 1_000
/** Maximum number of lines of one CSV reply. */
const linesMax = 50_000

export interface ActivityQuery extends ActivityFilters {
  readonly from?: string | undefined
  readonly to?: string | undefined
  readonly group?: ActivityGroup | undefined
}

export interface ActivityDeps {
  readonly db: Db
  readonly clock: Clock
  /** Writes the records that this process has settled to the database. */
  readonly journal: Flushable
  /** Returns the rate of the organisation's display currency. Null or absent: amounts are in rupees only. */
  readonly displayRateOf?: (orgId: number) => Promise<DisplayRate | null>
}

/** Activity reports of one organisation. */
export class Activity {
  readonly #deps: ActivityDeps

  constructor(deps: ActivityDeps) {
    this.#deps = deps
  }

  /**
   * Returns usage by day or hour and model, models, keys, agents and members by value, providers by model, and latencies. Each list by day, hour, model, provider,
   * agent and member adds up to the totals. After `dayModelsMax` models, all others share one name. `models` and `keys` ignore the filters of the query. A list is
   * null when no sums answer the filters and the span has too many single calls. Throws `bad_request`.
   */
  async report(orgId: number, query: ActivityQuery): Promise<ActivityReport> {
    const { db } = this.#deps
    const { of, room } = await this.#begin(orgId, query)
    const { span, group, filters } = of
    const mayRead = room !== null && mayReadEvents(span, room)
    const rows = await sumActivity(db, of, dayModelsMax)
    const models = rows.filter(row => row.part === 'model')
    const totals = models.filter(row => row.day === null && row.provider === null)
    const providers = providersByModel(models)
    const knowsCallers = sourceOf(filters, group) !== 'key'
    const { keys, modelIds, top } = await this.#lists(of, totals, mayRead)
    return {
      from: span.from,
      to: span.to,
      group,
      totals: figuresWithByok(totals),
      days: models.flatMap(row => (row.day === null || row.hour !== null ? [] : [{ day: row.day, model: row.model, ...figuresWithByok([row]) }])),
      ...(group === 'hour' ? { hours: models.flatMap(hourOf) } : {}),
      top_models: totals.slice(0, topMax).map(row => ({ model: row.model, ...figuresWithByok([row]) })),
      top_keys: top?.map(row => ({ ...namedKeyOf(row), ...figuresOf(row) })) ?? null,
      by_agent: knowsCallers ? agentsOf(rows) : null,
      by_member: knowsCallers ? membersOf(rows) : null,
      model_providers: totals.map(({ model }) => ({ model, providers: providers.get(model) ?? [] })),
      latency: await this.#latency(of, mayRead),
      models: modelIds,
      keys: keys.map(namedKeyOf),
    }
  }

  /**
   * Returns the same usage as CSV: one line for each day or hour, model and provider. Amounts in rupees are exact. Throws `bad_request`, also for a span with more
   * lines than one reply may have.
   */
  async csv(orgId: number, query: ActivityQuery): Promise<{ name: string; text: string }> {
    const { of } = await this.#begin(orgId, query)
    const { span, group } = of
    const name = `activity-${span.from}-to-${span.to}.csv`
    const rate = (await this.#deps.displayRateOf?.(orgId)) ?? null
    return { name, text: await usageCsv(await listActivityLines(this.#deps.db, of, linesMax + 1), linesMax, rate, group === 'hour') }
  }

  /** Checks the query, and brings the calls of this process into the database. `room` is null when the sums answer everything. */
  async #begin(orgId: number, query: ActivityQuery): Promise<{ of: ActivityAsk; room: EventRoom | null }> {
    const { db, clock, journal } = this.#deps
    const { from, to, group = 'day', ...filters } = query
    const nowMs = clock.nowMs()
    // A report by hour is of today unless the caller says otherwise.
    const span = activitySpan(from ?? (group === 'hour' ? (to ?? istDay(nowMs)) : undefined), to, nowMs)
    if (group === 'hour') checkHours(span, nowMs)
    await journal.flushNow()
    const { provider, keyId, agentId, userId, workspaceId } = filters
    const needsRoom = [provider, keyId, agentId, userId, workspaceId].some(value => value !== undefined)
    const room = needsRoom ? await db.one(findEventRoom, orgId, span.from, span.to) : null
    if (room !== null && sourceOf(filters, group) === 'events') checkEvents(span, room)
    return { of: { orgId, span, group, filters }, room }
  }

  /** Returns all keys and models of the span for the filters, and the top keys of the query. */
  async #lists(of: ActivityAsk, totals: readonly ActivityRow[], mayRead: boolean) {
    const { db } = this.#deps
    const { orgId, span } = of
    const keys = await this.#topKeys(orgId, span, filterKeysMax)
    const modelIds = (await db.many(listModels, orgId, span.from, span.to, modelsMax)).map(row => row.model)
    return { keys, modelIds, top: await this.#topKeysOf(of, totals, keys, mayRead) }
  }

  #topKeys(orgId: number, span: DaySpan, max: number): Promise<ActivityKeyRow[]> {
    const { headTo, tailFrom } = weeksIn(span)
    return this.#deps.db.many(topKeys, orgId, span.from, headTo, tailFrom, span.to, max)
  }

  async #topKeysOf(
    of: ActivityAsk,
    totals: readonly ActivityRow[],
    keys: readonly ActivityKeyRow[],
    mayRead: boolean,
  ): Promise<readonly ActivityKeyRow[] | null> {
    const { db } = this.#deps
    const { orgId, span, filters } = of
    const { model, keyId, provider, agentId, userId, workspaceId } = filters
    if (keyId !== undefined) {
      // With a key as the filter, the sum over all models is the usage of that key.
      if (totals.length === 0) return []
      const key = await db.maybe(findKeyName, orgId, keyId)
      return [{ ...sumOf(totals), keyId: keyId === 0 ? null : keyId, name: key?.name ?? null, revoked: key?.revoked ?? null }]
    }
    if ([provider, agentId, userId, workspaceId].some(value => value !== undefined))
      return mayRead ? db.many(topKeysOfEvents, ...eventParams(of, topMax)) : null
    if (model === undefined) return keys.slice(0, topMax)
    const { headTo, tailFrom } = weeksIn(span)
    return db.many(topKeysOfModel, orgId, span.from, headTo, tailFrom, span.to, topMax, model)
  }

  /** Sums of latencies know models and providers only. */
  async #latency(of: ActivityAsk, mayRead: boolean): Promise<ActivityLatency | null> {
    const { keyId, agentId, userId, workspaceId } = of.filters
    const isOfEvents = [keyId, agentId, userId, workspaceId].some(value => value !== undefined)
    return isOfEvents && !mayRead ? null : latencyOf(this.#deps.db, of, isOfEvents)
  }
}
