/** Counters of requests and calls. All counters are plain numbers. Each set of labels is created only once. */
import type { EdgeWatch } from '../../gateway/http/edge-watch.ts'
import type { CallWatch } from '../../gateway/inference/call-watch.ts'
import type { Outcome, UsageEvent, UsageKind } from '../../gateway/usage/events/record.ts'
import type { StoreWatch } from '../../memory/stores/watched-store.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Cell, Distribution, Metrics, Series } from '../../platform/observe/metrics.ts'

/** Upper bounds of histogram buckets, in seconds. */
const requestBounds = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120]
const callBounds = [0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128, 300]
const firstByteBounds = [0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 30]
const shortBounds = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
const uinrPerRupee = 1_000_000

/** A row of the endpoint table. All requests to one row share this object. */
type Address = Parameters<EdgeWatch['ended']>[0]

/** The counts of one row of the table. */
interface RowCounts {
  /** Counts by the first digit of the status, 1 to 5. Index 0 counts requests without an answer. */
  readonly statuses: (Cell | undefined)[]
  readonly duration: Distribution
}

/** Counts requests by the endpoint row that they reach, never by their path. */
export class EdgeCounts implements EdgeWatch {
  /** The number of running requests. */
  inFlight = 0
  readonly #clock: Clock
  readonly #rows = new Map<Address, RowCounts>()
  readonly #requests: Series<Cell>
  readonly #durations: Series<Distribution>
  readonly #refusals: Series<Cell>

  constructor(metrics: Metrics, clock: Clock) {
    this.#clock = clock
    this.#requests = metrics.counter('brigade_http_requests_total', 'Requests by endpoint and class of status; gone: the client left before an answer.', [
      'endpoint',
      'method',
      'status',
    ])
    this.#durations = metrics.histogram(
      'brigade_http_request_duration_seconds',
      'From the first to the last byte, streams included.',
      ['endpoint', 'method'],
      requestBounds,
    )
    this.#refusals = metrics.counter('brigade_errors_total', 'Errors that callers received, by code.', ['code'])
    metrics.gauge('brigade_http_requests_in_flight', 'Requests under way.', [], () => [{ labels: {}, value: this.inFlight }])
  }

  begun(): number {
    this.inFlight++
    return this.#clock.monotonicMs()
  }

  ended(binding: Address, begunAt: number, status: number | null): void {
    this.inFlight--
    const row = this.#rows.get(binding) ?? this.#rowOf(binding)
    const family = status === null ? 0 : Math.trunc(status / 100)
    const cell = row.statuses[family] ?? this.#statusOf(row, binding, family)
    cell.value++
    row.duration.observe((this.#clock.monotonicMs() - begunAt) / 1000)
  }

  strayed(path: '/mcp' | 'other', request: Parameters<EdgeWatch['strayed']>[1], response: Parameters<EdgeWatch['strayed']>[2]): void {
    const begunAt = this.begun()
    const method = methods.has(request.method ?? '') ? (request.method ?? '') : 'other'
    response.once('close', () => {
      this.inFlight--
      this.#requests.of(path, method, className(response.headersSent ? Math.trunc(response.statusCode / 100) : 0)).value++
      this.#durations.of(path, method).observe((this.#clock.monotonicMs() - begunAt) / 1000)
    })
  }

  refused(code: string): void {
    this.#refusals.of(code).value++
  }

  #rowOf(binding: Address): RowCounts {
    const [method = '', path = ''] = binding.at.split(' ')
    const made: RowCounts = { statuses: [], duration: this.#durations.of(path, method) }
    this.#rows.set(binding, made)
    return made
  }

  #statusOf(row: RowCounts, binding: Address, family: number): Cell {
    const [method = '', path = ''] = binding.at.split(' ')
    const made = this.#requests.of(path, method, className(family))
    row.statuses[family] = made
    return made
  }
}

const className = (family: number): string => (family === 0 ? 'gone' : `${family}xx`)

/** Returns the label for a name. Only names from the catalog may be labels. */
export interface LabelNames {
  model(id: string): string
  provider(id: string): string
}

/** The counts of one provider, model and kind. */
interface CallCounts {
  readonly outcomes: Map<Outcome, Cell>
  readonly duration: Distribution
  readonly firstByte: Distribution
  readonly input: Cell
  readonly output: Cell
  readonly cached: Cell
  readonly reasoning: Cell
  readonly value: Cell
  readonly cost: Cell
}

/** Counts model calls, using the values from their usage events. */
export class InferenceCounts implements CallWatch {
  readonly #names: LabelNames
  readonly #calls: Series<Cell>
  readonly #durations: Series<Distribution>
  readonly #firstBytes: Series<Distribution>
  readonly #tokens: Series<Cell>
  readonly #rupees = new Map<string, { readonly labels: Readonly<Record<string, string>>; readonly value: Cell; readonly cost: Cell }>()
  readonly #failures: Series<Cell>
  readonly #doubts: Series<Cell>
  /** The counts by the event's provider, model and kind. Only names that may be labels are keys of these maps. */
  readonly #known = new Map<string, Map<string, Map<UsageKind, CallCounts>>>()

  constructor(metrics: Metrics, names: LabelNames) {
    this.#names = names
    this.#calls = metrics.counter('brigade_inference_calls_total', 'Calls that were dialed, by how they ended.', ['provider', 'model', 'kind', 'outcome'])
    this.#durations = metrics.histogram('brigade_inference_duration_seconds', 'From the arrival of a call to its end.', ['provider', 'kind'], callBounds)
    this.#firstBytes = metrics.histogram('brigade_inference_first_byte_seconds', 'Until the reply of a call began.', ['provider', 'kind'], firstByteBounds)
    this.#tokens = metrics.counter(
      'brigade_inference_tokens_total',
      'Tokens: input, output, and of these cached_input (read from the cache of the provider) and reasoning (hidden output).',
      ['provider', 'model', 'direction'],
    )
    const rupees = (of: 'value' | 'cost') => () => [...this.#rupees.values()].map(row => ({ labels: row.labels, value: row[of].value / uinrPerRupee }))
    metrics.counted('brigade_inference_value_rupees_total', 'What calls are worth by the price list.', ['provider', 'model'], rupees('value'))
    metrics.counted('brigade_inference_cost_rupees_total', 'What calls were charged.', ['provider', 'model'], rupees('cost'))
    this.#failures = metrics.counter('brigade_provider_failures_total', 'Dials that failed, by class of failure or status of the provider.', [
      'provider',
      'reason',
    ])
    this.#doubts = metrics.counter(
      'brigade_provider_usage_doubted_total',
      'Calls whose provider reported a usage far from what was asked or shown, by figure and side: charged was what can be true.',
      ['provider', 'figure'],
    )
  }

  settled(event: UsageEvent): void {
    const counts = this.#of(event)
    let outcome = counts.outcomes.get(event.outcome)
    if (outcome === undefined) {
      const { provider, model } = this.#labelsOf(event)
      outcome = this.#calls.of(provider, model, event.kind, event.outcome)
      counts.outcomes.set(event.outcome, outcome)
    }
    outcome.value++
    counts.duration.observe(event.latencyMs / 1000)
    if (event.firstByteMs !== null) counts.firstByte.observe(event.firstByteMs / 1000)
    counts.input.value += event.promptTokens
    counts.output.value += event.completionTokens
    counts.cached.value += event.cachedTokens
    counts.reasoning.value += event.reasoningTokens
    counts.value.value += Number(event.valueUinr)
    counts.cost.value += Number(event.costUinr)
  }

  routeFailed({ route }: Parameters<CallWatch['routeFailed']>[0], reason: string): void {
    // The provider chooses the status. A number that is not an HTTP status counts as `other`.
    const known = /^\d+$/.test(reason) ? (/^[1-5]\d\d$/.test(reason) ? reason : 'other') : reason
    this.#failures.of(this.#names.provider(route.provider.id), known).value++
  }

  usageDoubted({ route }: Parameters<CallWatch['usageDoubted']>[0], doubt: Parameters<CallWatch['usageDoubted']>[1]): void {
    this.#doubts.of(this.#names.provider(route.provider.id), doubt).value++
  }

  #of(event: UsageEvent): CallCounts {
    return this.#known.get(event.provider)?.get(event.model)?.get(event.kind) ?? this.#make(event)
  }

  #labelsOf({ provider, model }: UsageEvent): { provider: string; model: string } {
    return { provider: this.#names.provider(provider), model: this.#names.model(model) }
  }

  #make(event: UsageEvent): CallCounts {
    const { provider, model } = this.#labelsOf(event)
    const rupees = this.#rupeesOf(provider, model)
    const made: CallCounts = {
      outcomes: new Map(),
      duration: this.#durations.of(provider, event.kind),
      firstByte: this.#firstBytes.of(provider, event.kind),
      input: this.#tokens.of(provider, model, 'input'),
      output: this.#tokens.of(provider, model, 'output'),
      cached: this.#tokens.of(provider, model, 'cached_input'),
      reasoning: this.#tokens.of(provider, model, 'reasoning'),
      value: rupees.value,
      cost: rupees.cost,
    }
    // Organisations can choose any names, so the counts for other names are not cached.
    if (provider !== event.provider || model !== event.model) return made
    const models = this.#known.get(provider) ?? new Map<string, Map<UsageKind, CallCounts>>()
    this.#known.set(provider, models)
    const kinds = models.get(model) ?? new Map<UsageKind, CallCounts>()
    models.set(model, kinds)
    kinds.set(event.kind, made)
    return made
  }

  #rupeesOf(provider: string, model: string): { readonly value: Cell; readonly cost: Cell } {
    const key = `${provider}\n${model}`
    const found = this.#rupees.get(key) ?? { labels: { provider, model }, value: { value: 0 }, cost: { value: 0 } }
    this.#rupees.set(key, found)
    return found
  }
}

/** Counts tool calls by name. The gateway defines all of these names, so their number is bounded. */
export class ToolCounts {
  readonly #calls: Series<Cell>
  readonly #durations: Series<Distribution>

  constructor(metrics: Metrics) {
    this.#calls = metrics.counter('brigade_mcp_tool_calls_total', 'Calls of MCP tools.', ['tool', 'outcome'])
    this.#durations = metrics.histogram('brigade_mcp_tool_duration_seconds', 'How long calls of MCP tools took.', ['tool'], shortBounds)
  }

  ended(tool: string, isOk: boolean, tookMs: number): void {
    this.#calls.of(tool, isOk ? 'ok' : 'error').value++
    this.#durations.of(tool).observe(tookMs / 1000)
  }
}

/** Counts the calls of memory stores. */
export function storeCounts(metrics: Metrics): StoreWatch {
  const calls = metrics.counter('brigade_memory_store_calls_total', 'Calls of memory stores, by what they came to.', ['operation', 'outcome'])
  const durations = metrics.histogram('brigade_memory_store_duration_seconds', 'How long calls of memory stores took.', ['operation'], shortBounds)
  return {
    ended(operation, outcome, tookMs) {
      calls.of(operation, outcome).value++
      durations.of(operation).observe(tookMs / 1000)
    },
  }
}
