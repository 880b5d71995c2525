/** Adds up what the results of a batch have used. The results are read once, as a stream, and nothing of them is kept. */

import { isObject } from '../../../platform/values/json.ts'
import { type PricedUnits, priceUnits } from '../../../platform/values/money.ts'
import type { RoutePrice } from '../../catalog/model.ts'
import { partsOf } from '../../inference/charge/price.ts'
import type { Dialect, HubRequest } from '../../providers/dialect.ts'
import type { TokenUsage } from '../../wire/usage.ts'
import { resultLineMaxBytes } from '../batch-bounds.ts'
import type { BatchFormat } from './remote-batch.ts'
import { resultLines } from './result-lines.ts'

export interface BatchSums {
  completed: number
  failed: number
  promptTokens: number
  completionTokens: number
  cachedTokens: number
  cacheWriteTokens: number
  reasoningTokens: number
  /** Completed requests without usage. */
  unread: number
}

/** How the results of a batch are read and priced. */
export interface ResultReading {
  readonly format: BatchFormat
  readonly dialect: Dialect
  readonly operation: HubRequest['operation']
  readonly price: RoutePrice
}

/** The sums of the results of one batch. */
export class BatchResults {
  readonly sums: BatchSums = {
    completed: 0,
    failed: 0,
    promptTokens: 0,
    completionTokens: 0,
    cachedTokens: 0,
    cacheWriteTokens: 0,
    reasoningTokens: 0,
    unread: 0,
  }
  readonly #reading: ResultReading
  /** The units by their price, because prices differ by the length of a prompt. */
  readonly #units = new Map<bigint, bigint>()

  constructor(reading: ResultReading) {
    this.#reading = reading
  }

  /** The price of everything read so far, rounded once. */
  get valueUinr(): bigint {
    // A part is at most as large as a number can hold exactly.
    const parts = [...this.#units].flatMap(([uinrPerMtok, units]) => splitUnits(units).map((part): PricedUnits => ({ units: part, uinrPerMtok })))
    return priceUnits(parts)
  }

  /** Reads a file of results. Throws when it breaks off, or has a line that is not a result. A line that is too long to be read counts as one without usage. */
  async read(pieces: AsyncIterable<Uint8Array>): Promise<void> {
    let number = 0
    for await (const bytes of resultLines(pieces, resultLineMaxBytes)) {
      number++
      if (bytes === null) {
        this.sums.completed++
        this.sums.unread++
        continue
      }
      const line: unknown = JSON.parse(bytes.toString('utf8'))
      if (!isObject(line)) throw new Error(`line ${number} of the results is not an object`)
      this.#add(this.#reading.format === 'openai' ? openaiReply(line) : anthropicReply(line))
    }
  }

  /** `reply` is null for a request that failed. */
  #add(reply: unknown): void {
    if (reply === null) {
      this.sums.failed++
      return
    }
    const { dialect, operation } = this.#reading
    this.sums.completed++
    const usage = dialect.usageOf(operation, reply)
    if (usage === null) this.sums.unread++
    else this.#count(usage)
  }

  #count(usage: TokenUsage): void {
    const { sums } = this
    sums.promptTokens += usage.promptTokens
    sums.completionTokens += usage.completionTokens
    sums.cachedTokens += usage.cachedTokens
    sums.cacheWriteTokens += usage.cacheWriteTokens
    sums.reasoningTokens += usage.reasoningTokens
    for (const { units, uinrPerMtok } of partsOf(this.#reading.price, usage))
      if (units > 0) this.#units.set(uinrPerMtok, (this.#units.get(uinrPerMtok) ?? 0n) + BigInt(Math.trunc(units)))
  }
}

const unitsMost = 1_000_000_000_000n

function splitUnits(units: bigint): number[] {
  const parts: number[] = []
  for (let left = units; left > 0n; left -= unitsMost) parts.push(Number(left < unitsMost ? left : unitsMost))
  return parts
}

/** Returns the reply of a line in OpenAI's format, or null for a failed request. */
function openaiReply({ response, error }: Record<string, unknown>): unknown {
  if (!isObject(response) || (error !== null && error !== undefined)) return null
  const { status_code: status, body } = response
  return typeof status === 'number' && status >= 200 && status < 300 && isObject(body) ? body : null
}

/** Returns the reply of a line in Anthropic's format, or null for a failed request. */
function anthropicReply({ result }: Record<string, unknown>): unknown {
  return isObject(result) && result['type'] === 'succeeded' && isObject(result['message']) ? result['message'] : null
}
