/**
 * Metrics of this process in the Prometheus text format. Requests change only plain numbers in `Cell` and `Distribution` objects. prom-client reads these
 * numbers at each scrape. Decision 0351 gives the reasons.
 */
import { AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, Histogram, type MetricObjectWithValues, type MetricValue, Registry } from 'prom-client'

/** A count. `value` only increases. */
export interface Cell {
  value: number
}

/** One value of a metric with its labels. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** A distribution of values: counts by upper bound, their sum and their number. */
export class Distribution {
  readonly counts: number[]
  sum = 0
  count = 0
  readonly #bounds: readonly number[]

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.counts = bounds.map(() => 0)
  }

  /** Adds one value. */
  observe(value: number): void {
    this.sum += value
    this.count++
    for (let index = 0; index < this.#bounds.length; index++)
      if (value <= (this.#bounds[index] as number)) {
        this.counts[index] = (this.counts[index] as number) + 1
        return
      }
  }
}

/** Maximum number of label sets of one metric. All labels come from fixed tables of the gateway, so this limit is only a safety net. */
const seriesMax = 5000
const overflow = 'other'

/** The values of one metric by its labels, in the order of the label names. */
export class Series<T> {
  readonly #names: readonly string[]
  readonly #make: () => T
  readonly #found = new Map<string, { readonly labels: Readonly<Record<string, string>>; readonly item: T }>()

  constructor(names: readonly string[], make: () => T) {
    this.#names = names
    this.#make = make
  }

  /** Returns the item with these labels and makes it if it is new. Frequent callers should keep the result. */
  of(...values: readonly string[]): T {
    const key = values.join('\n')
    const found = this.#found.get(key)
    if (found !== undefined) return found.item
    if (this.#found.size >= seriesMax && values.some(value => value !== overflow)) return this.of(...values.map(() => overflow))
    const labels = Object.fromEntries(this.#names.map((name, index) => [name, values[index] ?? '']))
    const item = this.#make()
    this.#found.set(key, { labels, item })
    return item
  }

  get all(): Iterable<{ readonly labels: Readonly<Record<string, string>>; readonly item: T }> {
    return this.#found.values()
  }
}

/** Content type of `Metrics.text`. */
export const metricsContentType = Registry.PROMETHEUS_CONTENT_TYPE

/** The metrics of one gateway. */
export class Metrics {
  readonly #registry = new Registry()

  constructor() {
    processRegistry()
  }

  /** Makes a counter. The code that uses a cell increases its value. */
  counter(name: string, help: string, labelNames: readonly string[]): Series<Cell> {
    const series = new Series<Cell>(labelNames, () => ({ value: 0 }))
    this.counted(name, help, labelNames, () => [...series.all].map(({ labels, item }) => ({ labels, value: item.value })))
    return series
  }

  /** Makes a counter whose values are read at each scrape. They must only increase. */
  counted(name: string, help: string, labelNames: readonly string[], read: () => readonly Sample[]): void {
    new Counter({
      name,
      help,
      labelNames: [...labelNames],
      registers: [this.#registry],
      collect() {
        this.reset()
        for (const { labels, value } of read()) this.inc({ ...labels }, value)
      },
    })
  }

  /** Makes a gauge whose values are read at each scrape. */
  gauge(name: string, help: string, labelNames: readonly string[], read: () => readonly Sample[]): void {
    new Gauge({
      name,
      help,
      labelNames: [...labelNames],
      registers: [this.#registry],
      collect() {
        this.reset()
        for (const { labels, value } of read()) this.set({ ...labels }, value)
      },
    })
  }

  /** Makes a histogram. The code that uses a distribution adds the values. `bounds` must be in increasing order. */
  histogram(name: string, help: string, labelNames: readonly string[], bounds: readonly number[]): Series<Distribution> {
    const series = new Series<Distribution>(labelNames, () => new Distribution(bounds))
    this.#registry.registerMetric(new KeptHistogram(name, help, labelNames, bounds, series))
    return series
  }

  /** Returns all metrics as data, for `textOfWorkers` in another process. */
  async snapshots(): Promise<readonly MetricSnapshot[]> {
    return [...(await this.#registry.getMetricsAsJSON()), ...(await processRegistry().getMetricsAsJSON())]
  }

  /** Returns all metrics, including those of the process, in the Prometheus text format 0.0.4. */
  async text(): Promise<string> {
    return (await this.#registry.metrics()) + (await processRegistry().metrics())
  }
}

/** One metric with its values, as data that can be sent to another process. */
export type MetricSnapshot = MetricObjectWithValues<MetricValue<string>>

/**
 * Returns the metrics of several processes as one text. Each value has the number of its process in the label `worker`. The values are not
 * added up, because a sum would decrease when a process is replaced, and a reader would take that for a restarted counter.
 */
export function textOfWorkers(all: readonly { readonly worker: number; readonly metrics: readonly MetricSnapshot[] }[]): Promise<string> {
  const labelled = all.map(({ worker, metrics }) =>
    metrics.map(metric => ({
      ...metric,
      aggregator: 'sum' as const,
      values: metric.values.map(each => ({ ...each, labels: { ...each.labels, worker: String(worker) } })),
    })),
  )
  return AggregatorRegistry.aggregate(labelled).metrics()
}

interface HistogramValue {
  readonly metricName: string
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
}

/** A histogram whose values are stored outside of prom-client. */
class KeptHistogram extends Histogram<string> {
  readonly #head: { readonly name: string; readonly help: string; readonly bounds: readonly number[] }
  readonly #series: Series<Distribution>

  constructor(name: string, help: string, labelNames: readonly string[], bounds: readonly number[], series: Series<Distribution>) {
    super({ name, help, labelNames: [...labelNames], buckets: [...bounds], registers: [] })
    this.#head = { name, help, bounds }
    this.#series = series
  }

  override get(): ReturnType<Histogram<string>['get']> {
    const { name, help } = this.#head
    const values = [...this.#series.all].flatMap(({ labels, item }) => this.#valuesOf(labels, item))
    return Promise.resolve({ name, help, type: 'histogram', aggregator: 'sum', values } as unknown as Awaited<ReturnType<Histogram<string>['get']>>)
  }

  /** The registry calls this when it writes text. */
  getForPromString(): ReturnType<Histogram<string>['get']> {
    return this.get()
  }

  #valuesOf(labels: Readonly<Record<string, string>>, { counts, sum, count }: Distribution): HistogramValue[] {
    const { name, bounds } = this.#head
    let below = 0
    const buckets = bounds.map((bound, index): HistogramValue => {
      below += counts[index] ?? 0
      return { metricName: `${name}_bucket`, labels: { ...labels, le: bound }, value: below }
    })
    return [
      ...buckets,
      { metricName: `${name}_bucket`, labels: { ...labels, le: '+Inf' }, value: count },
      { metricName: `${name}_sum`, labels, value: sum },
      { metricName: `${name}_count`, labels, value: count },
    ]
  }
}

let ofProcess: Registry | null = null

/** Returns the registry of process metrics: memory, processor, garbage collection and event loop. All gateways in one process share it. */
function processRegistry(): Registry {
  if (ofProcess === null) {
    ofProcess = new Registry()
    collectDefaultMetrics({ register: ofProcess })
  }
  return ofProcess
}
