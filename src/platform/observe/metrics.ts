/**
 * Metrics of this process as Prometheus text. A value that is counted during a request is a plain number of its owner (`Cell`, `Distribution`);
 * prom-client reads it at each scrape. Decision 0351 says why.
 */
import { AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, Histogram, type MetricObjectWithValues, type MetricValue, Registry } from 'prom-client'

/** A count. `value` only grows. */
export interface Cell {
  value: number
}

/** One value of a metric with its labels. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** How values spread: counts by upper bound, their sum and number. */
export class Distribution {
  readonly counts: number[]
  sum = 0
  count = 0
  readonly #bounds: readonly number[]

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.counts = bounds.map(() => 0)
  }

  /** Notes one value. */
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

/** Most label sets of one metric. Labels come from tables of ours, so this is never reached; it is the last wall. */
const seriesMax = 5000
const overflow = 'other'

/** The values of one metric by its labels, in order of the names. */
export class Series<T> {
  readonly #names: readonly string[]
  readonly #make: () => T
  readonly #found = new Map<string, { readonly labels: Readonly<Record<string, string>>; readonly item: T }>()

  constructor(names: readonly string[], make: () => T) {
    this.#names = names
    this.#make = make
  }

  /** The one with these labels, made when it is new. Who asks often keeps it. */
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

  /** Counts that their owners move. */
  counter(name: string, help: string, labelNames: readonly string[]): Series<Cell> {
    const series = new Series<Cell>(labelNames, () => ({ value: 0 }))
    this.counted(name, help, labelNames, () => [...series.all].map(({ labels, item }) => ({ labels, value: item.value })))
    return series
  }

  /** Counts that are kept elsewhere and read when somebody asks; they only grow. */
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

  /** States that are read when somebody asks. */
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

  /** Distributions that their owners move. `bounds` rise. */
  histogram(name: string, help: string, labelNames: readonly string[], bounds: readonly number[]): Series<Distribution> {
    const series = new Series<Distribution>(labelNames, () => new Distribution(bounds))
    this.#registry.registerMetric(new KeptHistogram(name, help, labelNames, bounds, series))
    return series
  }

  /** All of it as data, for `textOfWorkers` in another process. */
  async snapshots(): Promise<readonly MetricSnapshot[]> {
    return [...(await this.#registry.getMetricsAsJSON()), ...(await processRegistry().getMetricsAsJSON())]
  }

  /** All of it in the Prometheus text format 0.0.4, with those of the process. */
  async text(): Promise<string> {
    return (await this.#registry.metrics()) + (await processRegistry().metrics())
  }
}

/** One metric with its values, as data that another process can be sent. */
export type MetricSnapshot = MetricObjectWithValues<MetricValue<string>>

/**
 * The metrics of several processes as one text, each value with the number of its process in the label `worker`. They are not added up: a sum would fall when
 * a process is replaced, which a reader takes for a counter that began again.
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

/** A histogram whose numbers are kept outside of prom-client. */
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

  /** What the registry asks when it writes text. */
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

/** Memory, processor, garbage collection and event loop belong to the process, however many gateways run in it. */
function processRegistry(): Registry {
  if (ofProcess === null) {
    ofProcess = new Registry()
    collectDefaultMetrics({ register: ofProcess })
  }
  return ofProcess
}
