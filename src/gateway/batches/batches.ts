/**
 * Batches: many requests that a provider answers within a day, at a lower price. The whole batch is held before the provider gets it, and the poller
 * settles it when it has ended. Decisions 0881 to 0884 give the reasons.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Tx } from '../../platform/db/db.ts'
import type { BodyStream, Call, Reply } from '../../platform/endpoint.ts'
import { fail } from '../../platform/errors.ts'
import type { Principal } from '../../platform/security/principal.ts'
import { isDebited } from '../inference/admit-call.ts'
import { placeOf } from '../inference/charge/residency.ts'
import type { SpentUnits } from '../limits/holds/lasting-holds.ts'
import type { Charge } from '../limits/journal/journal-records.ts'
import type { Attempt } from '../routing/plan.ts'
import { type EnteredRun, enterRun, runIdFor } from '../usage/runs/entry/enter-run.ts'
import { defaultFields } from '../wire/chat/router-fields.ts'
import { lineMaxBytes, openBatchesMax, windowMs } from './batch-bounds.ts'
import { batchPriceOf, priceText } from './batch-price.ts'
import { askCancel, type BatchRow, countOpen, deleteBatch, type FileRow, findBatch, insertBatch, listBatches, setUpstream } from './batch-queries.ts'
import { anthropicView, openaiView } from './batch-views.ts'
import { type BatchesDeps, callerOf, viewerOf } from './batches-deps.ts'
import { type BatchFiles, bounded, ownerOf, streamed, type UploadPlaces } from './files.ts'
import { type BatchKind, batchKindOf, messagesBatch } from './lines/batch-kind.ts'
import { anthropicShape, type BatchCaller, BatchLines, requireRetention } from './lines/batch-lines.ts'
import type { Line } from './lines/line-reader.ts'
import { requestElements } from './lines/request-elements.ts'
import { callerError, ProviderAccount, ProviderRefusedError } from './provider/provider-account.ts'
import { type BatchFormat, markerName, type RemoteBatch, remoteBatchOf } from './provider/remote-batch.ts'

/** What a caller sends to make a batch in OpenAI's format. */
export interface BatchAsk {
  readonly inputFileId: string
  readonly endpoint: string
  /** It goes on to the provider and is not kept. */
  readonly metadata: Readonly<Record<string, string>> | null
}

/** What a new batch is made of. */
interface NewBatch {
  readonly id: string
  readonly format: BatchFormat
  readonly kind: BatchKind
  readonly attempt: Attempt
  readonly lines: number
  readonly holdUinr: bigint
  readonly inputFileId: string | null
}

/** A batch that is held, or will be. */
interface HeldBatch {
  readonly id: string
  readonly orgId: number
  readonly format: BatchFormat
}

/** The batches of organisations. */
export class Batches {
  readonly #deps: BatchesDeps
  readonly #files: BatchFiles
  readonly #places: UploadPlaces

  constructor(deps: BatchesDeps, files: BatchFiles, places: UploadPlaces) {
    this.#deps = deps
    this.#files = files
    this.#places = places
  }

  /** Makes a batch of an uploaded file. Throws the refusals of a call, `bad_request`, and what the provider refuses. */
  async create(ask: BatchAsk, call: Call<Principal>): Promise<object> {
    const caller = await callerOf(call, this.#deps)
    const file = await this.#files.find(call.principal, ask.inputFileId)
    const kind = batchKindOf(ask.endpoint)
    const attempt = this.#attemptOf(file, kind, caller)
    const account = await this.#files.account(caller.principal.orgId, file)
    const id = `batch_${this.#deps.ids.secret('', 18)}`
    const { lines, holdUinr } = file
    const requestId = call.requestId
    const held = new HoldUnderWay()
    held.taken = this.#hold({ id, format: 'openai', kind, attempt, lines, holdUinr, inputFileId: file.id }, caller, call, requestId)
    await held.taken
    held.isWhole = true
    const asked = { input_file_id: file.upstreamId, endpoint: ask.endpoint, completion_window: '24h', metadata: { ...ask.metadata, [markerName]: id } }
    await this.#begin({ id, orgId: caller.principal.orgId, format: 'openai' }, account, () => account.ask('POST', '/batches', asked), held)
    return this.get(call, 'openai', id)
  }

  /** Makes a batch of messages. The requests go through to the provider while they arrive, and the last byte follows when the whole batch is held. */
  async createMessages(stream: BodyStream, call: Call<Principal>): Promise<object> {
    const caller = await callerOf(call, this.#deps)
    return this.#places.run(caller.principal.orgId, () => this.#createMessages(stream, caller, call))
  }

  /** Returns a batch that the caller may see. Throws `not_found`. */
  async get(call: Call<Principal>, format: BatchFormat, id: string): Promise<object> {
    return viewOf(await this.#find(call.principal, format, id), call.baseUrl)
  }

  /** Returns the newest batches of the caller. */
  async list(call: Call<Principal>, format: BatchFormat, after: string | null, limit: number): Promise<object> {
    const rows = await this.#deps.db.many(listBatches, ...viewerOf(call.principal), format, after, limit + 1)
    const data = rows.slice(0, limit).map(row => viewOf(row, call.baseUrl))
    const ends = { first_id: rows[0]?.id ?? null, last_id: rows[Math.min(limit, rows.length) - 1]?.id ?? null }
    return { ...(format === 'openai' ? { object: 'list' } : {}), data, ...ends, has_more: rows.length > limit }
  }

  /** Asks for the end of a batch. A process asks the provider soon; requests that are done are charged. */
  async cancel(call: Call<Principal>, format: BatchFormat, id: string): Promise<object> {
    const { db, nowMs } = this.#deps
    await this.#find(call.principal, format, id)
    await db.exec(askCancel, call.principal.orgId, id, new Date(nowMs()))
    return this.get(call, format, id)
  }

  /** Streams the results of a batch of messages. Throws `bad_request` before its end. */
  async results(call: Call<Principal>, id: string): Promise<Reply> {
    const row = await this.#find(call.principal, 'anthropic', id)
    if (row.settledAt === null || row.upstreamId === null)
      throw fail('bad_request', { message: 'This batch has no results yet. Its processing_status is ended when it has.' })
    requireRetention(await this.#deps.inference.orgRouting(row.orgId))
    const account = await this.#files.account(row.orgId, row)
    return streamed(account, `/messages/batches/${row.upstreamId}/results`, 'application/x-jsonl', call.signal)
  }

  /** Deletes an ended batch of messages, with its results at the provider. Its usage stays. */
  async delete(call: Call<Principal>, id: string): Promise<object> {
    const row = await this.#find(call.principal, 'anthropic', id)
    if (row.settledAt === null) throw fail('bad_request', { message: 'This batch has not ended. Cancel it first.' })
    if (row.upstreamId !== null) {
      const account = await this.#files.account(row.orgId, row)
      await account.ask('DELETE', `/messages/batches/${row.upstreamId}`).catch((error: unknown) => {
        if (!(error instanceof ProviderRefusedError && error.status === 404)) throw callerError(error, account.provider)
      })
    }
    await this.#deps.db.exec(deleteBatch, row.orgId, id)
    return { id, type: 'message_batch_deleted' }
  }

  async #find(principal: Principal, format: BatchFormat, id: string): Promise<BatchRow> {
    const row = await this.#deps.db.maybe(findBatch, ...viewerOf(principal), format, id)
    if (row === null) throw fail('not_found', { message: 'There is no such batch.' })
    return row
  }

  /**
   * Returns the route of a file for this caller, at the prices of batches. The caller must be the one that uploaded the file, because the lines were checked
   * under its rules. What may have changed since is checked again.
   */
  #attemptOf(file: FileRow, kind: BatchKind, { principal, agent, org }: BatchCaller): Attempt {
    requireRetention(org)
    if (file.purpose !== 'input') throw fail('bad_request', { message: 'This file is the result of a batch.' })
    if (file.endpoint !== kind.endpoint) throw fail('bad_request', { message: `The lines of this file are for ${file.endpoint}.` })
    if (file.keyId !== principal.keyId || file.agentId !== agent.agentId)
      throw fail('forbidden', { message: 'Another credential uploaded this file, and its lines were checked under the rules of that one. Upload it again.' })
    const plan = this.#deps.inference.resolve({
      modelId: file.model,
      kind: kind.kind.modelKind,
      fields: defaultFields,
      org,
      policies: agent.policies,
      promptTokens: 0,
    })
    const found = plan.attempts.find(
      ({ route, byok }) => route.provider.id === file.provider && route.upstreamModel === file.upstreamModel && byok === file.byok,
    )
    if (found === undefined)
      throw fail('no_route', { message: `"${file.model}" is not served by ${file.provider} for this credential any more. Upload the file again.` })
    const price = batchPriceOf(found.route.price)
    if (!isDeepStrictEqual(file.price, JSON.parse(priceText(price))))
      throw fail('bad_request', { message: 'The price of the model changed since the upload. Upload the file again.' })
    for (const { owner, maxOutputTokens, maxCostUinr } of agent.policies) {
      const isTooLong = maxOutputTokens !== null && file.lineOutputTokens > maxOutputTokens
      if (isTooLong || (maxCostUinr !== null && file.lineUinr > maxCostUinr))
        throw fail('call_cap_exceeded', { message: `A line of this file is beyond a cap on single calls that this ${owner} has now. No provider was called.` })
    }
    return { ...found, route: { ...found.route, price } }
  }

  async #createMessages(stream: BodyStream, caller: BatchCaller, call: Call<Principal>): Promise<object> {
    const { ids, inference, config } = this.#deps
    const id = `msgbatch_${ids.secret('', 18)}`
    const kinds = { kind: messagesBatch, kindOf: () => messagesBatch, linesMax: config.BATCH_LINES_MAX }
    const lines = new BatchLines(anthropicShape, kinds, caller, inference)
    const reader = requestElements(bounded(stream.pieces, config.BATCH_FILE_MAX_BYTES), lineMaxBytes)
    const first = await reader.next()
    if (first.done === true) throw fail('bad_request', { message: 'A batch needs at least one request.' })
    const head = await lines.add(first.value)
    const { attempt } = lines
    const account = new ProviderAccount(attempt.route.provider, attempt.credential, inference.outbound)
    const held = new HoldUnderWay()
    const ends = new AbortController()
    const body = messagesBody(head, reader, lines, async () => {
      const { lines: count, holdUinr } = lines.totals
      inference.recheck(caller.principal)
      held.taken = this.#hold(
        { id, format: 'anthropic', kind: messagesBatch, attempt, lines: count, holdUinr, inputFileId: null },
        caller,
        call,
        call.requestId,
      )
      await held.taken
      if (held.isOver || ends.signal.aborted) throw new Error('the request to the provider has ended')
      held.isWhole = true
    })
    // A caller that leaves ends the upload, but not when the provider may have the whole batch: its outcome would be unknown.
    const onLeft = (): void => {
      if (!held.isWhole) ends.abort(call.signal.reason)
    }
    call.signal.addEventListener('abort', onLeft, { once: true })
    await this.#begin(
      { id, orgId: caller.principal.orgId, format: 'anthropic' },
      account,
      () => account.upload('/messages/batches', 'application/json', body, ends.signal),
      held,
    )
    return this.get(call, 'anthropic', id)
  }

  /** Holds a batch and writes its row, in one transaction. Nothing is at the provider yet. Returns what is spent already. */
  async #hold(batch: NewBatch, caller: BatchCaller, call: Call<Principal>, requestId: string): Promise<SpentUnits> {
    const { ids, inference, lasting, nowMs } = this.#deps
    const { principal, agent } = caller
    const { id, attempt, holdUinr, lines } = batch
    const entered = await enterRun(principal, agent, runIdFor(principal, call.runId ?? null), call, inference)
    const debits = isDebited(principal, inference) && !attempt.byok
    const admittedAtMs = nowMs()
    const eventId = ids.uuidv7(admittedAtMs)
    const request = {
      principal,
      eventId,
      agentId: agent.agentId,
      agentAncestorIds: agent.ancestorIds,
      policies: agent.policies,
      run: entered?.capped ?? null,
      needUinr: holdUinr,
      worstUinr: holdUinr,
      debitUinr: debits ? holdUinr : null,
    }
    const write = async (tx: Tx, charge: Charge): Promise<void> => {
      if ((await tx.one(countOpen, principal.orgId)).count >= openBatchesMax)
        throw fail('cap', { message: `The organisation has ${openBatchesMax} batches that have not ended. Wait for one, or cancel one.` })
      await tx.exec(
        insertBatch,
        JSON.stringify(rowOf(batch, caller, entered, { charge, debits, eventId, requestId, admittedAtMs, pollMs: this.#deps.config.BATCH_POLL_MS })),
      )
    }
    return lasting.hold(request, id, { uinr: holdUinr, requests: lines }, write)
  }

  /**
   * Gives a held batch to its provider. When the provider certainly has no whole batch, the hold goes back. When nobody knows, the batch stays, and the poller
   * finds out.
   */
  async #begin({ id, orgId, format }: HeldBatch, account: ProviderAccount, ask: () => Promise<Record<string, unknown>>, held: HoldUnderWay): Promise<void> {
    const { db, log } = this.#deps
    let remote: RemoteBatch
    try {
      remote = remoteBatchOf(format, await ask())
    } catch (error) {
      held.isOver = true
      const isRefusal = error instanceof ProviderRefusedError && error.isRefusal
      if (held.isWhole && !isRefusal) {
        log.warn('batch_outcome_unknown', { provider: account.provider.id, error })
        return
      }
      // The hold may be under way, and nobody would give it back.
      const spent = await held.outcome()
      if (spent !== null)
        await db.tx(async tx => {
          await this.#deps.lasting.undo(tx, id, spent)
          await tx.exec(deleteBatch, orgId, id)
        })
      throw callerError(error, account.provider)
    }
    await this.#note(id, remote)
  }

  /** Notes the id of the provider. Without it nobody finds the batch, so a failure is followed by further attempts, also after the reply to the caller. */
  async #note(id: string, remote: RemoteBatch): Promise<void> {
    const { db, log, nowMs } = this.#deps
    const write = (): Promise<number> => db.exec(setUpstream, id, remote.id, remote.isEnded ? 'in_progress' : remote.status, new Date(nowMs()))
    try {
      await write()
    } catch (error) {
      log.warn('batch_id_not_written', { error })
      void this.#noteLater(write)
    }
  }

  /** Never rejects. */
  async #noteLater(write: () => Promise<number>): Promise<void> {
    for (const waitMs of noteWaitsMs) {
      await this.#deps.clock.sleep(waitMs)
      const isWritten = await write().then(
        () => true,
        () => false,
      )
      if (isWritten) return
    }
    this.#deps.log.error('batch_id_lost', {})
  }
}

/** The waits before further attempts to write the id of a provider. */
const noteWaitsMs = [250, 500, 1000, 2000, 5000, 10_000, 10_000, 10_000, 10_000, 10_000]

/** What is known about a batch that its provider gets while it is held. */
class HoldUnderWay {
  /** The hold, once it has begun. */
  taken: Promise<SpentUnits> | null = null
  /** True when the provider may have the whole batch. */
  isWhole = false
  /** True when the request to the provider has failed, so that it must not get the end any more. */
  isOver = false

  /** Resolves when the hold is not under way: with what it has spent, or with null when there is none. */
  async outcome(): Promise<SpentUnits | null> {
    return this.taken === null ? null : this.taken.catch(() => null)
  }
}

const viewOf = (row: BatchRow, baseUrl: string): object => (row.format === 'openai' ? openaiView(row) : anthropicView(row, baseUrl))

async function* messagesBody(head: Buffer, rest: AsyncIterable<Line>, lines: BatchLines, admit: () => Promise<void>): AsyncGenerator<Buffer> {
  yield Buffer.from('{"requests":[')
  yield head
  for await (const line of rest) {
    yield comma
    yield await lines.add(line)
  }
  await admit()
  // Without this end, the provider has no batch.
  yield Buffer.from(']}')
}

const comma = Buffer.from(',')

interface Admission {
  readonly charge: Charge
  readonly debits: boolean
  readonly eventId: string
  readonly requestId: string
  readonly admittedAtMs: number
  readonly pollMs: number
}

/** Returns the row of a new batch, with the names of its columns. */
function rowOf(
  { id, format, kind, attempt, lines, holdUinr, inputFileId }: NewBatch,
  caller: BatchCaller,
  entered: EnteredRun | null,
  admission: Admission,
): object {
  const { charge, debits, eventId, requestId, admittedAtMs, pollMs } = admission
  const { route, model, byok } = attempt
  const at = (ms: number): string => new Date(ms).toISOString()
  return {
    ...ownerOf(caller),
    id,
    workspace_id: caller.principal.workspaceId,
    agent_label: caller.agent.label,
    run_id: entered?.run.runId ?? null,
    run_agent_id: entered?.run.runAgentId ?? null,
    format,
    endpoint: kind.endpoint,
    model: model.id,
    provider: route.provider.id,
    dialect: route.dialect,
    residency: placeOf(route),
    byok,
    debits,
    input_file_id: inputFileId,
    status: format === 'openai' ? 'validating' : 'in_progress',
    lines,
    hold_uinr: String(holdUinr),
    price: JSON.parse(priceText(route.price)),
    charge,
    event_id: eventId,
    request_id: requestId,
    admitted_at: at(admittedAtMs),
    expires_at: at(admittedAtMs + windowMs),
    next_poll_at: at(admittedAtMs + pollMs),
  }
}
