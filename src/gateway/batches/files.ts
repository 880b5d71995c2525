/** Files of batches. The bytes go through to the provider while they arrive, and Brigade keeps what it counted. Decision 0881 gives the reasons. */
import type { BodyStream, Call } from '../../platform/endpoint.ts'
import { type Reply, reply } from '../../platform/endpoint.ts'
import { fail } from '../../platform/errors.ts'
import type { CancelSignal } from '../../platform/loop/cancellation.ts'
import type { OutboundReply } from '../../platform/outbound/upstream-body.ts'
import type { Principal } from '../../platform/security/principal.ts'
import { isDebited } from '../inference/admit-call.ts'
import { balanceOf } from '../limits/budgets/prepaid.ts'
import type { Attempt } from '../routing/plan.ts'
import {
  deletionRetryMs,
  fileDaysMax,
  filesMax,
  filesMaxBytes,
  forgottenDays,
  lineMaxBytes,
  sweepAskMs,
  sweepLooksMost,
  sweepPlaces,
  sweptMost,
  sweptOfOrg,
  uploadsMax,
  uploadsOfFounderMax,
  uploadsOfProcessMax,
} from './batch-bounds.ts'
import {
  deleteFile,
  type ExpiredFile,
  type FileRow,
  findExpiredFiles,
  findFile,
  insertFiles,
  isFileInUse,
  listFiles,
  postponeFile,
  shrinkFiles,
  sumFiles,
} from './batch-queries.ts'
import { type BatchesDeps, callerOf, viewerOf } from './batches-deps.ts'
import { batchKindOf, messagesBatch } from './lines/batch-kind.ts'
import { type BatchCaller, BatchLines, openaiShape, requireRetention } from './lines/batch-lines.ts'
import { formFileOf } from './lines/form-file.ts'
import { type Line, linesOf } from './lines/line-reader.ts'
import { callerError, ProviderAccount, ProviderRefusedError } from './provider/provider-account.ts'
import { idIn } from './provider/remote-batch.ts'

const dayMs = 24 * 3600_000

/** A file was not asked for, because its account refused another one. */
class AccountDownError extends Error {
  override readonly name = 'AccountDownError'
}

/** Counts the uploads in this process. Each may wait for the rest of a line for minutes. */
export class UploadPlaces {
  readonly #founderOf: (orgId: number) => string
  readonly #taken = new Map<string, number>()

  constructor(founderOf: (orgId: number) => string) {
    this.#founderOf = founderOf
  }

  /** Runs `work` in a place of the organisation, of its founder and of the process. Throws `places_taken`. */
  async run<T>(orgId: number, work: () => Promise<T>): Promise<T> {
    const bounds = [
      { name: `org ${orgId}`, most: uploadsMax, who: 'This organisation already sends' },
      { name: `founder ${this.#founderOf(orgId)}`, most: uploadsOfFounderMax, who: 'The organisations of one founder already send' },
      { name: 'process', most: uploadsOfProcessMax, who: 'All organisations together already send' },
    ]
    for (const { name, most, who } of bounds)
      if ((this.#taken.get(name) ?? 0) >= most)
        throw fail('places_taken', { message: `${who} ${most} batches to this process. Wait for one to end.`, retryAfterSeconds: 5 })
    for (const { name } of bounds) this.#taken.set(name, (this.#taken.get(name) ?? 0) + 1)
    try {
      return await work()
    } finally {
      for (const { name } of bounds) this.#give(name)
    }
  }

  #give(name: string): void {
    const left = (this.#taken.get(name) ?? 1) - 1
    if (left > 0) this.#taken.set(name, left)
    else this.#taken.delete(name)
  }
}

/** The files of organisations at their providers. */
export class BatchFiles {
  readonly #deps: BatchesDeps
  readonly #places: UploadPlaces
  readonly #stop = new AbortController()
  #sweeping: Promise<void> = Promise.resolve()

  constructor(deps: BatchesDeps, places: UploadPlaces) {
    this.#deps = deps
    this.#places = places
  }

  /** Checks a file line by line and passes it on. Throws the refusals of a call, with the number of the line, and what the provider refuses. */
  async upload(stream: BodyStream, call: Call<Principal>): Promise<object> {
    const caller = await callerOf(call, this.#deps)
    return this.#places.run(caller.principal.orgId, () => this.#upload(stream, caller, call.signal))
  }

  /** Returns the newest files of the caller. */
  async list(principal: Principal, after: string | null, limit: number): Promise<object> {
    const rows = await this.#deps.db.many(listFiles, ...viewerOf(principal), after, limit + 1, this.#now())
    const data = rows.slice(0, limit).map(fileView)
    return { object: 'list', data, first_id: rows[0]?.id ?? null, last_id: rows[Math.min(limit, rows.length) - 1]?.id ?? null, has_more: rows.length > limit }
  }

  async get(principal: Principal, id: string): Promise<object> {
    return fileView(await this.find(principal, id))
  }

  /** Returns a file that the caller may see. Throws `not_found`. */
  async find(principal: Principal, id: string): Promise<FileRow> {
    const row = await this.#deps.db.maybe(findFile, ...viewerOf(principal), id, this.#now())
    if (row === null) throw fail('not_found', { message: 'There is no such file.' })
    return row
  }

  /** Streams a file from its provider. */
  async content(call: Call<Principal>, id: string): Promise<Reply> {
    const row = await this.find(call.principal, id)
    const account = await this.account(call.principal.orgId, row)
    return streamed(account, `/files/${row.upstreamId}/content`, 'application/octet-stream', call.signal)
  }

  /** Deletes a file at its provider and forgets it. Throws `bad_request` while a batch reads it. */
  async delete(call: Call<Principal>, id: string): Promise<object> {
    const { db } = this.#deps
    const { orgId } = call.principal
    const row = await this.find(call.principal, id)
    if ((await db.one(isFileInUse, orgId, id)).inUse)
      throw fail('bad_request', { message: 'A batch that has not ended reads this file. Cancel the batch first.' })
    const account = await this.account(orgId, row)
    await account.ask('DELETE', `/files/${row.upstreamId}`).catch((error: unknown) => {
      if (!isGone(error)) throw callerError(error, account.provider)
    })
    await db.exec(deleteFile, orgId, id)
    return { id, object: 'file', deleted: true }
  }

  /** Returns the account of a file. Throws `unavailable`. */
  async account(orgId: number, { provider, byok }: Pick<FileRow, 'provider' | 'byok'>): Promise<ProviderAccount> {
    const account = await this.#deps.accounts.of({ orgId, provider, byok })
    if (account === null) throw fail('unavailable', { message: `The key for ${provider} with which this was made is not here any more.` })
    return account
  }

  /** Ends the files that a window of `days` days no longer covers. Callers find none of them when the promise resolves. Providers are asked after that. */
  async shrink(orgId: number, days: number): Promise<void> {
    const { db, log } = this.#deps
    if ((await db.exec(shrinkFiles, orgId, days)) === 0) return
    const { signal } = this.#stop
    this.#sweeping = this.#sweeping
      .then(() => this.sweep(signal))
      .catch((error: unknown) => {
        if (!signal.aborted) log.warn('batch_files_not_swept', { orgId, error })
      })
  }

  /** Ends the work that `shrink` has begun. The regular sweep does the rest. */
  async stop(): Promise<void> {
    this.#stop.abort(new Error('the process stops'))
    await this.#sweeping
  }

  #now(): Date {
    return new Date(this.#deps.nowMs())
  }

  /**
   * Deletes the files whose time has ended, at their providers too. Each look takes a few files of every organisation, and a file whose deletion failed waits
   * longer each time, so nobody's failures delay the files of others.
   */
  async sweep(signal: AbortSignal): Promise<void> {
    // Accounts that refused or did not answer. Their other files are not asked for in this sweep.
    const down = new Set<string>()
    for (let look = 0; look < sweepLooksMost; look++) {
      const due = await this.#deps.db.many(findExpiredFiles, this.#now(), sweptOfOrg, sweptMost)
      if (due.length === 0) return
      const left = due.values()
      const work = async (): Promise<void> => {
        for (const file of left) {
          signal.throwIfAborted()
          await this.#deleteExpired(file, down, signal)
        }
      }
      await Promise.all(Array.from({ length: sweepPlaces }, work))
    }
  }

  async #deleteExpired({ id, orgId, provider, byok, upstreamId, expiresAt }: ExpiredFile, down: Set<string>, signal: AbortSignal): Promise<void> {
    const { db, log, accounts, nowMs } = this.#deps
    const accountKey = `${orgId} ${provider} ${byok}`
    try {
      if (down.has(accountKey)) throw new AccountDownError()
      await (await accounts.of({ orgId, provider, byok }))?.ask('DELETE', `/files/${upstreamId}`, undefined, signal, sweepAskMs)
    } catch (error) {
      signal.throwIfAborted()
      const ageMs = nowMs() - expiresAt.getTime()
      if (!isGone(error) && ageMs < forgottenDays * dayMs) {
        if (!down.has(accountKey)) log.warn('batch_file_not_deleted', { orgId, provider, error })
        if (isOfAccount(error)) down.add(accountKey)
        await db.exec(postponeFile, orgId, id, new Date(nowMs() + Math.max(deletionRetryMs, ageMs / 2)))
        return
      }
    }
    await db.exec(deleteFile, orgId, id)
  }

  async #upload(stream: BodyStream, caller: BatchCaller, signal: CancelSignal): Promise<object> {
    const { db, inference, config } = this.#deps
    const { orgId } = caller.principal
    const sum = await db.one(sumFiles, orgId)
    if (sum.files >= filesMax || sum.bytes >= BigInt(filesMaxBytes))
      throw fail('cap', {
        message: `The organisation has ${sum.files} files with ${sum.bytes} bytes. It may have ${filesMax} files and ${filesMaxBytes} bytes. Delete some.`,
      })
    const form = await formFileOf({ ...stream, pieces: bounded(stream.pieces, config.BATCH_FILE_MAX_BYTES) })
    try {
      const lines = new BatchLines(openaiShape, { kind: null, kindOf: batchKindOf, linesMax: config.BATCH_LINES_MAX }, caller, inference)
      const reader = linesOf(form.file, lineMaxBytes)
      const first = await reader.next()
      if (first.done === true) throw fail('bad_request', { message: 'The file has no line.' })
      const head = await lines.add(first.value, signal)
      if (lines.kind === messagesBatch) throw fail('bad_request', { message: 'Line 1: batches of messages go to POST /v1/messages/batches.' })
      await this.#checkPaid(caller, lines.attempt)
      const { route, credential } = lines.attempt
      const account = new ProviderAccount(route.provider, credential, inference.outbound)
      const pieces = linesAfter(head, reader, lines)
      const check = async (): Promise<void> => checkPurpose((await form.fields()).get('purpose'))
      const sent = await this.#send(account, { pieces, days: daysOf(caller.org.retentionDays), check }, signal)
      return await this.#keep(caller, lines, account, sent)
    } finally {
      form.drop()
    }
  }

  /** Without a balance, the platform's account stores nothing. Throws `insufficient_credits`. */
  async #checkPaid({ principal }: BatchCaller, { byok }: Attempt): Promise<void> {
    const { db, inference } = this.#deps
    if (byok || !isDebited(principal, inference)) return
    if ((await balanceOf(db, principal.orgId)) <= 0n) throw fail('insufficient_credits')
  }

  /**
   * Sends the form of a file. A caller that leaves ends it, but not after the last byte: the provider has the file then, and only its answer says under which
   * id.
   */
  async #send(account: ProviderAccount, { pieces, days, check }: FileForm, signal: CancelSignal): Promise<SentFile> {
    signal.throwIfAborted()
    const boundary = this.#deps.ids.secret('brigade-', 24)
    const counted = { bytes: 0 }
    const whole = { is: false }
    const ends = new AbortController()
    const onLeft = (): void => {
      if (!whole.is) ends.abort(signal.reason)
    }
    signal.addEventListener('abort', onLeft, { once: true })
    const body = formOf(boundary, counting(pieces, counted), days, async () => {
      await check()
      whole.is = true
    })
    try {
      const made = await account.upload('/files', `multipart/form-data; boundary=${boundary}`, body, ends.signal)
      return { upstreamId: idIn(made), bytes: counted.bytes }
    } catch (error) {
      throw callerError(error, account.provider)
    } finally {
      signal.removeEventListener('abort', onLeft)
    }
  }

  /** Writes the row of a file. When that fails, nobody could delete the file at the provider later, so it is deleted now. */
  async #keep(caller: BatchCaller, lines: BatchLines, account: ProviderAccount, sent: SentFile): Promise<object> {
    const { db, ids, inference, log } = this.#deps
    const { orgId } = caller.principal
    try {
      // The window may be shorter than at the beginning of the upload.
      const org = await inference.orgRouting(orgId)
      requireRetention(org)
      const id = `file-${ids.secret('', 18)}`
      await db.exec(insertFiles, JSON.stringify([rowOf(id, caller, lines, sent, this.#now().getTime(), daysOf(org.retentionDays))]))
      return await this.get(caller.principal, id)
    } catch (error) {
      await account
        .ask('DELETE', `/files/${sent.upstreamId}`)
        .catch((failure: unknown) => log.warn('batch_file_not_deleted', { orgId, provider: account.provider.id, error: failure }))
      throw error
    }
  }
}

/** A form for the provider. `check` runs after the last line, before the end of the form. */
interface FileForm {
  readonly pieces: AsyncIterable<Buffer>
  /** The days for which the provider keeps the file. */
  readonly days: number
  check(): Promise<void>
}

/** A file that the provider has. */
interface SentFile {
  readonly upstreamId: string
  readonly bytes: number
}

const daysOf = (retentionDays: number): number => Math.min(fileDaysMax, retentionDays)

/** Returns the row of an uploaded file, with the names of its columns. */
function rowOf(id: string, caller: BatchCaller, lines: BatchLines, { upstreamId, bytes }: SentFile, now: number, days: number): object {
  const { route, model, byok } = lines.attempt
  return {
    ...ownerOf(caller),
    id,
    purpose: 'input',
    bytes,
    lines: lines.totals.lines,
    endpoint: lines.kind.endpoint,
    model: model.id,
    provider: route.provider.id,
    upstream_model: route.upstreamModel,
    byok,
    upstream_id: upstreamId,
    hold_uinr: String(lines.totals.holdUinr),
    line_uinr: String(lines.totals.lineUinr),
    line_output_tokens: Math.min(lines.totals.lineOutputTokens, 2_147_483_647),
    price: JSON.parse(lines.priceText),
    created_at: new Date(now).toISOString(),
    expires_at: new Date(now + days * dayMs).toISOString(),
  }
}

/** Passes pieces on up to a number of bytes. Throws `payload_too_large`. */
export async function* bounded(pieces: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<Buffer> {
  let bytes = 0
  for await (const piece of pieces) {
    bytes += piece.length
    if (bytes > maxBytes) throw fail('payload_too_large', { message: `A batch may have at most ${maxBytes} bytes (BATCH_FILE_MAX_BYTES).` })
    yield piece
  }
}

/** The columns of the owner of a file or a batch. */
export const ownerOf = ({ principal, agent }: BatchCaller) => ({
  org_id: principal.orgId,
  user_id: principal.userId,
  key_id: principal.keyId,
  agent_id: agent.agentId,
  ancestor_ids: agent.ancestorIds,
})

/** True when no file of the account can be deleted now. */
const isOfAccount = (error: unknown): boolean => !(error instanceof ProviderRefusedError) || error.status === 401 || error.status === 403

const isGone = (error: unknown): boolean => error instanceof ProviderRefusedError && error.status === 404

function checkPurpose(purpose: string | undefined): void {
  if (purpose !== 'batch')
    throw fail('bad_request', { message: 'The form needs the field "purpose" with the value batch. Brigade takes files for batches only.' })
}

/**
 * Writes the form for the provider. Its end is written when every line and the fields of the caller's form are checked. The provider deletes the file itself
 * after `days`, so that no file stays for ever of which Brigade does not know.
 */
async function* formOf(boundary: string, lines: AsyncIterable<Buffer>, days: number, check: () => Promise<void>): AsyncGenerator<Buffer> {
  const part = (name: string, more = ''): string => `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${more}\r\n`
  const fields = { purpose: 'batch', 'expires_after[anchor]': 'created_at', 'expires_after[seconds]': String((days * dayMs) / 1000) }
  const before = Object.entries(fields).map(([name, value]) => `${part(name)}\r\n${value}\r\n`)
  yield Buffer.from(`${before.join('')}${part('file', '; filename="batch.jsonl"')}content-type: application/jsonl\r\n\r\n`)
  yield* lines
  await check()
  yield Buffer.from(`\r\n--${boundary}--\r\n`)
}

/** Returns the checked lines as the provider gets them. */
async function* linesAfter(head: Buffer, rest: AsyncIterable<Line>, lines: BatchLines): AsyncGenerator<Buffer> {
  yield head
  for await (const line of rest) {
    yield newline
    yield await lines.add(line)
  }
  yield newline
}

const newline = Buffer.from('\n')

async function* counting(pieces: AsyncIterable<Buffer>, counted: { bytes: number }): AsyncGenerator<Buffer> {
  for await (const piece of pieces) {
    counted.bytes += piece.length
    yield piece
  }
}

/** Returns a reply that streams contents from a provider. Throws what the provider refuses. */
export async function streamed(account: ProviderAccount, path: string, contentType: string, signal: CancelSignal): Promise<Reply> {
  const made = await account.download(path, signal).catch((error: unknown) => {
    throw callerError(error, account.provider)
  })
  return reply.stream(sink => relayed(made, sink), { 'content-type': contentType, 'cache-control': 'no-store' })
}

async function relayed({ body }: OutboundReply, sink: Parameters<Parameters<typeof reply.stream>[0]>[0]): Promise<void> {
  try {
    for (let end = await body.flow(chunk => sink.push(chunk)); end !== 'ended'; end = await body.flow(chunk => sink.push(chunk))) {
      if (end === 'stopped') await sink.room()
      if (sink.isGone) return
    }
  } finally {
    body.destroy()
  }
}

function fileView({ id, bytes, purpose, createdAt, expiresAt }: FileRow): object {
  return {
    id,
    object: 'file',
    bytes: Number(bytes),
    created_at: seconds(createdAt),
    expires_at: seconds(expiresAt),
    filename: `${id}.jsonl`,
    purpose: purpose === 'input' ? 'batch' : 'batch_output',
    status: 'processed',
  }
}

/** Returns a time in Unix seconds. */
export const seconds = (at: Date): number => Math.floor(at.getTime() / 1000)
