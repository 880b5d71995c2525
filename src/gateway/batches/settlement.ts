/** Charges an ended batch: reads its results once, adds up their usage, and writes one usage event in one transaction. Decision 0883 gives the reasons. */
import type { Tx } from '../../platform/db/db.ts'
import { inrFromUinr } from '../../platform/values/money.ts'
import type { Charge } from '../limits/journal/journal-records.ts'
import type { DialectId } from '../providers/provider.ts'
import type { Outcome, UsageEvent } from '../usage/events/record.ts'
import { emit, eventId } from '../webhooks/events/events.ts'
import { fileDaysMax } from './batch-bounds.ts'
import { priceFrom } from './batch-price.ts'
import { type BatchRow, insertFiles, settleBatch } from './batch-queries.ts'
import type { BatchesDeps } from './batches-deps.ts'
import { batchKindOf } from './lines/batch-kind.ts'
import { BatchResults, type BatchSums } from './provider/batch-results.ts'
import type { ProviderAccount } from './provider/provider-account.ts'
import { openResults, type RemoteBatch } from './provider/remote-batch.ts'

const dayMs = 24 * 3600_000

/** A batch was settled by another process, or another process works on it. */
class AlreadySettledError extends Error {
  override readonly name = 'AlreadySettledError'
}

/** A file with results. */
interface ResultFile {
  readonly purpose: 'output' | 'error'
  readonly id: string
  readonly upstreamId: string
  readonly bytes: number
}

/** What a batch came to. */
interface Outturn {
  readonly status: string
  readonly sums: BatchSums
  readonly valueUinr: bigint
  readonly estimated: boolean
  readonly files: readonly ResultFile[]
}

/** Settles batches. */
export class Settlement {
  readonly #deps: BatchesDeps

  constructor(deps: BatchesDeps) {
    this.#deps = deps
  }

  /** Reads the results and charges them. Throws when they cannot be read; nothing is charged then. */
  async settle(row: BatchRow, remote: RemoteBatch, account: ProviderAccount, signal: AbortSignal): Promise<void> {
    const { inference } = this.#deps
    const { operation } = batchKindOf(row.endpoint)
    const dialect = inference.dialectOf(row.dialect as DialectId)
    const results = new BatchResults({ format: row.format, dialect, operation, price: priceFrom(row.price) })
    const files: ResultFile[] = []
    for (const { purpose, fileId, path } of remote.results) {
      const reply = await openResults(account, path, signal)
      const counted = { bytes: 0 }
      try {
        await results.read(counting(reply.body, counted))
      } finally {
        reply.body.destroy()
      }
      if (fileId !== null) files.push(this.#fileOf(purpose, fileId, counted.bytes))
    }
    const { sums } = results
    // A request with an answer and without usage costs what it held on average.
    const guessedUinr = sums.unread === 0 ? 0n : (row.holdUinr * BigInt(sums.unread)) / BigInt(Math.max(1, row.lines))
    const failed = Math.max(sums.failed, remote.failed, remote.results.length === 0 ? row.lines : 0)
    await this.#write(row, {
      status: remote.status,
      sums: { ...sums, failed },
      valueUinr: results.valueUinr + guessedUinr,
      estimated: sums.unread > 0,
      files,
    })
  }

  /**
   * Ends a batch whose results nobody can read any more. The requests that its provider counted as done cost what they held on average. It does nothing when
   * another process has claimed the batch. `results` are files that the caller may still get.
   */
  async giveUp(row: BatchRow, claim: string, results: RemoteBatch['results'] = []): Promise<void> {
    const sums: BatchSums = {
      completed: row.completed,
      failed: row.lines - row.completed,
      promptTokens: 0,
      completionTokens: 0,
      cachedTokens: 0,
      cacheWriteTokens: 0,
      reasoningTokens: 0,
      unread: row.completed,
    }
    const valueUinr = (row.holdUinr * BigInt(row.completed)) / BigInt(Math.max(1, row.lines))
    this.#deps.log.error('batch_given_up', { orgId: row.orgId, provider: row.provider, count: row.completed })
    const files = results.flatMap(({ purpose, fileId }) => (fileId === null ? [] : [this.#fileOf(purpose, fileId, 0)]))
    const status = row.format === 'openai' ? 'failed' : 'ended'
    await this.#write(row, { status, sums, valueUinr, estimated: row.completed > 0, files }, claim)
  }

  #fileOf(purpose: ResultFile['purpose'], upstreamId: string, bytes: number): ResultFile {
    return { purpose, id: `file-${this.#deps.ids.secret('', 18)}`, upstreamId, bytes }
  }

  async #write(row: BatchRow, outturn: Outturn, ownClaim: string | null = null): Promise<void> {
    const { inference, lasting, nowMs } = this.#deps
    const now = nowMs()
    const { status, sums, valueUinr, files } = outturn
    const costUinr = row.byok ? 0n : valueUinr
    const fileOf = (purpose: string): string | null => files.find(file => file.purpose === purpose)?.id ?? null
    const claim = async (tx: Tx): Promise<void> => {
      const settled = await tx.exec(
        settleBatch,
        row.id,
        status,
        sums.completed,
        sums.failed,
        fileOf('output'),
        fileOf('error'),
        new Date(now),
        valueUinr,
        costUinr,
        ownClaim,
      )
      if (settled === 0) throw new AlreadySettledError(row.id)
    }
    const { retentionDays } = await inference.orgRouting(row.orgId)
    const expiresMs = now + Math.min(fileDaysMax, retentionDays) * dayMs
    const write = async (tx: Tx): Promise<void> => {
      if (files.length > 0) await tx.exec(insertFiles, JSON.stringify(files.map(file => fileRowOf(file, row, now, expiresMs))))
      await this.#emit(tx, row, outturn, now)
    }
    try {
      await lasting.settle(row.id, eventOf(row, outturn, costUinr), row.charge as Charge, claim, write)
    } catch (error) {
      if (!(error instanceof AlreadySettledError)) throw error
    }
  }

  async #emit(tx: Tx, row: BatchRow, { status, sums, valueUinr }: Outturn, now: number): Promise<void> {
    await emit(tx, {
      id: eventId(this.#deps.ids, now),
      orgId: row.orgId,
      type: sums.completed > 0 ? 'batch.completed' : 'batch.failed',
      atMs: now,
      data: {
        batch_id: row.id,
        status,
        endpoint: row.endpoint,
        model: row.model,
        requests: row.lines,
        completed: sums.completed,
        failed: sums.failed,
        value_inr: inrFromUinr(valueUinr),
        cost_inr: inrFromUinr(row.byok ? 0n : valueUinr),
      },
    })
  }
}

async function* counting(pieces: AsyncIterable<Uint8Array>, counted: { bytes: number }): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) {
    counted.bytes += piece.length
    yield piece
  }
}

/** Returns the one usage event of a batch. It belongs to the day, the month and the run of its admission. */
function eventOf(row: BatchRow, { sums, valueUinr, estimated }: Outturn, costUinr: bigint): UsageEvent {
  const outcome: Outcome = sums.completed > 0 ? 'ok' : row.cancelAskedAt === null ? 'failed' : 'cut'
  const event: UsageEvent = {
    id: row.eventId,
    atMs: row.admittedAt.getTime(),
    requestId: row.requestId,
    orgId: row.orgId,
    userId: row.userId,
    keyId: row.keyId,
    workspaceId: row.workspaceId,
    agentId: row.agentId,
    agentLabel: row.agentLabel,
    kind: 'batch',
    model: row.model,
    provider: row.provider,
    residency: row.residency as UsageEvent['residency'],
    streamed: false,
    byok: row.byok,
    status: 200,
    outcome,
    promptTokens: sums.promptTokens,
    completionTokens: sums.completionTokens,
    cachedTokens: sums.cachedTokens,
    cacheWriteTokens: sums.cacheWriteTokens,
    reasoningTokens: sums.reasoningTokens,
    images: 0,
    audioSeconds: 0,
    characters: 0,
    estimated,
    valueUinr,
    costUinr,
    latencyMs: 0,
    firstByteMs: null,
  }
  return row.runId === null ? event : { ...event, runId: row.runId, runAgentId: row.runAgentId }
}

/** Returns the row of a file with results, with the names of its columns. */
const fileRowOf = ({ id, purpose, upstreamId, bytes }: ResultFile, row: BatchRow, now: number, expiresMs: number): object => ({
  id,
  org_id: row.orgId,
  user_id: row.userId,
  key_id: row.keyId,
  agent_id: row.agentId,
  ancestor_ids: row.ancestorIds,
  purpose,
  bytes,
  lines: 0,
  endpoint: row.endpoint,
  model: row.model,
  provider: row.provider,
  upstream_model: '',
  byok: row.byok,
  upstream_id: upstreamId,
  hold_uinr: 0,
  line_uinr: 0,
  line_output_tokens: 0,
  price: {},
  created_at: new Date(now).toISOString(),
  expires_at: new Date(expiresMs).toISOString(),
})
