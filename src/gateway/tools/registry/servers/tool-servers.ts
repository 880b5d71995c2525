import type { Clock } from '../../../../platform/clock.ts'
import type { Db, Tx } from '../../../../platform/db/db.ts'
import type { ControlLog, NewsItem } from '../../../../platform/db/db-control-log.ts'
import { fail, type GatewayError } from '../../../../platform/errors.ts'
import type { CancelSignal } from '../../../../platform/loop/cancellation.ts'
import type { UrlGuard } from '../../../../platform/outbound/url-guard.ts'
import type { AddressTests } from '../../../../platform/security/address-tests.ts'
import { maskSecret, type Sealer } from '../../../../platform/security/secrets.ts'
import type { Ids } from '../../../../platform/values/ids.ts'
import { failureIn } from '../../oauth/issuer/oauth-failure.ts'
import { bearerHeader, type ServerOAuth, type TriedClient } from '../../oauth/server-oauth.ts'
import type { AuthKind, ToolCredential } from '../callable-tool.ts'
import { noteSyncError } from '../sync/sync-queries.ts'
import type { Look, ToolLooks } from '../sync/tool-look.ts'
import { isSameCredential, noToolServer, type SyncResult, type ToolSync } from '../sync/tool-sync.ts'
import { openCredential, toolCredentialOwner } from '../tool-credential.ts'
import { orgToolsChanged, toolServerChanged, toolServerOff } from '../tool-news.ts'
import {
  changeToolServer,
  deleteDefinitions,
  deletePins,
  deleteToolCredential,
  deleteToolServer,
  findToolServer,
  insertToolServer,
  listToolServers,
  listToolSlugs,
  lockOrg,
  lockToolServer,
  putToolCredential,
  type SealedToolServerRow,
  switchAllOff,
  switchToolServer,
  type ToolServerRow,
  withdrawApprovals,
} from './tool-server-queries.ts'
import { checkedParams, isElsewhere, type ServerChange, type ServerParams, slugFor } from './tool-server-rules.ts'

export interface ToolServersDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly sealer: Sealer
  readonly controlLog: ControlLog
  /** The setting TOOL_GATEWAY. When it is false, servers can neither be registered nor used. Registered servers stay in the database. */
  readonly enabled: boolean
  readonly guard: UrlGuard
  readonly addressTests: Pick<AddressTests, 'take' | 'passed'>
  readonly looks: ToolLooks
  readonly sync: ToolSync
  readonly oauth: Pick<ServerOAuth, 'tried' | 'write' | 'end'>
  /** The setting TOOL_SERVERS_PER_ORG. */
  readonly serversMax: number
  /** Pause between two syncs of a server. */
  readonly pauseMs: number
  /** Public base URL of this gateway. */
  baseUrl(): string
}

/** A server after a change, with what its test found. Null when the change needed no test. */
export interface ChangedServer {
  readonly server: ToolServerRow
  readonly result: SyncResult | null
}

/** Maximum number of slugs that an organisation ever uses, deleted servers included. */
const slugsMax = 1_000
/** The slug under which a server is tested that is not registered yet. Its hashes are valid for this slug only. */
const testSlug = 'test'

/** MCP servers of organisations. The gateway reads the tools of a server before it saves it. It connects to the server only through the URL guard. */
export class ToolServers {
  readonly #deps: ToolServersDeps
  constructor(deps: ToolServersDeps) {
    this.#deps = deps
  }

  /** Throws `unavailable` while the tool gateway is switched off. */
  requireEnabled(): void {
    if (!this.#deps.enabled) throw fail('unavailable', { message: 'The tool gateway is switched off here. The operator switches it on with TOOL_GATEWAY=on.' })
  }

  /** Returns the registered servers of an organisation, oldest first, with masked headers. */
  list(orgId: number): Promise<ToolServerRow[]> {
    return this.#deps.db.many(listToolServers, orgId)
  }

  /** Reads the tools of the server that `params` describe, and saves nothing. Throws `bad_name`, `bad_request`, `rate_limit_exceeded`, `places_taken`. */
  async test(orgId: number, params: ServerParams, slug: string | null, signal: CancelSignal): Promise<TestedLook> {
    const checked = this.#checked(params)
    return (await this.#tested(orgId, slugFor(slug ?? testSlug, '', []), checked, signal)).look
  }

  /**
   * Reads the tools of a server, and saves it with its definitions when that succeeds. When it fails, throws `bad_request` with the reason. Also throws
   * `cap`, `tool_slug_taken` and the errors of `test`.
   */
  async register(orgId: number, given: ServerParams, givenSlug: string | null, signal: CancelSignal): Promise<ChangedServer> {
    const params = this.#checked(given)
    const slug = slugFor(givenSlug, params.name, this.#withRoom(await this.#deps.db.many(listToolSlugs, orgId)))
    const tested = await this.#tested(orgId, slug, params, signal)
    const look = passed(tested.look)
    return this.#deps.controlLog.change(async tx => {
      await tx.one(lockOrg, orgId)
      const taken = this.#withRoom(await tx.many(listToolSlugs, orgId))
      // The hashes contain the slug, so a slug that somebody took meanwhile needs another look.
      if (taken.includes(slug)) throw fail('tool_slug_taken')
      const id = await this.#insert(tx, orgId, slug, params)
      const { result, news } = await this.#keep(tx, orgId, { id, slug }, { ...tested, look })
      return { value: { server: await tx.one(findToolServer, orgId, id), result }, news }
    })
  }

  /**
   * Changes the given fields of a server. Its slug never changes. The saved header is never sent to another origin, so a change of origin needs the header
   * again, and it ends every approval. A server with a client needs its credential again for every new address. A new address or credential is tested first.
   * Running calls that began under another one end. Throws `not_found` and the errors of `register`.
   */
  async change(orgId: number, id: string, change: ServerChange, signal: CancelSignal): Promise<ChangedServer> {
    const before = await this.#deps.db.maybe(findToolServer, orgId, id)
    if (before === null) throw noToolServer()
    const isMoved = change.url !== undefined && isElsewhere(change.url, before.url)
    const isUrlNew = change.url !== undefined && change.url !== before.url
    if (change.header === undefined && ((isMoved && before.headerSealed !== null) || (isUrlNew && before.clientId !== null))) throw credentialNeededAgain()
    // The saved header is opened only for a test. When it does not change, its sealed text stays the same.
    const header = change.header !== undefined ? change.header : change.url === undefined ? null : this.#headerOf(orgId, before)
    const { name, url, residency, priceUinr, timeoutMs } = before
    const next = this.#checked({ name, url, residency, priceUinr, timeoutMs, client: null, ...change, header })
    const isTested = change.header !== undefined || next.url !== url
    const tested = isTested ? await this.#tested(orgId, before.slug, next, signal) : null
    const look = tested === null ? null : passed(tested.look)
    return this.#deps.controlLog.change(async tx => {
      const now = await locked(tx, orgId, id)
      if (!isSameCredential(now, before)) throw changedMeanwhile()
      const kind = change.header === undefined ? before.authKind : kindOf(next)
      await tx.exec(changeToolServer, orgId, id, next.name, next.url, kind, next.residency, next.priceUinr, next.timeoutMs)
      if (change.header !== undefined) await this.#putHeader(tx, orgId, id, change.header)
      const ended = change.header !== undefined && next.client === null ? await this.#deps.oauth.end(tx, orgId, id) : []
      if (isMoved) await tx.exec(withdrawApprovals, orgId, id)
      const { result, news } = tested === null || look === null ? { result: null, news: [] } : await this.#keep(tx, orgId, now, { ...tested, look })
      const all = [orgNews(orgId), ...(isTested ? [{ kind: toolServerChanged, ref: id }] : []), ...ended, ...news]
      return { value: { server: await tx.one(findToolServer, orgId, id), result }, news: all }
    })
  }

  /** Reads a registered server now, and keeps what it shows. The server stays registered either way. Throws `not_found`, `rate_limit_exceeded`. */
  async resync(orgId: number, id: string, signal: CancelSignal): Promise<{ readonly server: ToolServerRow; readonly result: SyncResult }> {
    const { db, sync } = this.#deps
    if ((await db.maybe(findToolServer, orgId, id)) === null) throw noToolServer()
    const result = await this.#rated(orgId, () => sync.sync(orgId, id, signal))
    const server = await db.maybe(findToolServer, orgId, id)
    if (server === null) throw noToolServer()
    return { server, result }
  }

  /** Switches a server on or off. Calls of a server that is off end, and new ones are refused. Throws `not_found`. */
  async turn(orgId: number, id: string, state: 'on' | 'off'): Promise<ToolServerRow> {
    return this.#deps.controlLog.change(async tx => {
      await locked(tx, orgId, id)
      await tx.exec(switchToolServer, orgId, id, state, new Date(this.#deps.clock.nowMs()))
      return { value: await tx.one(findToolServer, orgId, id), news: [orgNews(orgId), ...(state === 'off' ? [offNews(id)] : [])] }
    })
  }

  /** Switches every server of the organisation off. Returns the number of those that were on. */
  async turnAllOff(orgId: number): Promise<number> {
    return this.#deps.controlLog.change(async tx => {
      const ids = (await tx.many(switchAllOff, orgId)).map(({ id }) => id)
      return { value: ids.length, news: ids.length === 0 ? [] : [orgNews(orgId), ...ids.map(offNews)] }
    })
  }

  /** Removes a server with its header, definitions and approvals. Its slug is never used again. Throws `not_found`. */
  async remove(orgId: number, id: string): Promise<void> {
    await this.#deps.controlLog.change(async tx => {
      await locked(tx, orgId, id)
      for (const statement of [deleteToolCredential, deletePins, deleteDefinitions]) await tx.exec(statement, orgId, id)
      await tx.exec(deleteToolServer, orgId, id, new Date(this.#deps.clock.nowMs()))
      const ended = await this.#deps.oauth.end(tx, orgId, id)
      return { value: undefined, news: [orgNews(orgId), offNews(id), ...ended] }
    })
  }

  /**
   * Tests a server: gets the token of its client, and reads its tools. A server to which people connect is read after the first owner or admin has connected,
   * so its look has no tools and no era.
   */
  async #tested(orgId: number, slug: string, { url, header, client }: ServerParams, signal: CancelSignal): Promise<Tested> {
    const { oauth, looks } = this.#deps
    if (client === null) return { tried: null, look: await this.#rated(orgId, () => looks.look(orgId, slug, { url, header }, signal)) }
    const tried = await this.#rated(orgId, async () => {
      try {
        return { ok: true as const, ...(await oauth.tried(url, client, signal)) }
      } catch (error) {
        const failure = failureIn(error)
        if (failure === null) throw error
        return { ok: false as const, error: 'issuer' as const, message: failure.message }
      }
    })
    if (!tried.ok) return { tried: null, look: tried }
    if (tried.token === null) return { tried, look: { ok: true, era: null, received: { tools: [], leftOut: [] } } }
    const target = { url, header: bearerHeader(tried.token.access) }
    return { tried, look: await this.#rated(orgId, () => looks.look(orgId, slug, target, signal)) }
  }

  /** Writes what a test found: the client, its first token, and the tools. */
  async #keep(
    tx: Tx,
    orgId: number,
    server: Pick<ToolServerRow, 'id' | 'slug'>,
    { tried, look }: { readonly tried: TriedClient | null; readonly look: PassedLook },
  ): Promise<{ result: SyncResult | null; news: readonly NewsItem[] }> {
    const { oauth, sync } = this.#deps
    const ofClient = tried === null ? [] : await oauth.write(tx, orgId, server.id, tried)
    if (look.era === null) {
      await tx.exec(noteSyncError, orgId, server.id, 'connection_required')
      return { result: null, news: ofClient }
    }
    const { changes, leftOut, news } = await sync.write(tx, orgId, server, { ...look, era: look.era })
    return { result: { ok: true, changes, leftOut }, news: [...ofClient, ...news] }
  }

  /** Makes one test and counts it against the organisation's rate of tests. A passed test does not count. */
  async #rated<T extends { readonly ok: boolean }>(orgId: number, test: () => Promise<T>): Promise<T> {
    const { addressTests } = this.#deps
    addressTests.take(orgId)
    const result = await test()
    if (result.ok) addressTests.passed(orgId)
    return result
  }

  #checked(params: ServerParams): ServerParams {
    return checkedParams(params, this.#deps.guard, this.#deps.baseUrl())
  }

  /** Returns the slugs that were ever used. Throws `cap` when the organisation has no room for another server. */
  #withRoom(slugs: readonly { readonly slug: string; readonly isDeleted: boolean }[]): string[] {
    const { serversMax } = this.#deps
    if (slugs.filter(({ isDeleted }) => !isDeleted).length >= serversMax)
      throw fail('cap', { message: `An organisation may have ${serversMax} MCP servers. Remove one first.` })
    if (slugs.length >= slugsMax) throw fail('cap', { message: `An organisation may register ${slugsMax} MCP servers in all, removed ones included.` })
    return slugs.map(({ slug }) => slug)
  }

  async #insert(tx: Tx, orgId: number, slug: string, params: ServerParams): Promise<string> {
    const nowMs = this.#deps.clock.nowMs()
    const id = this.#deps.ids.uuidv7(nowMs)
    const { name, url, header, residency, priceUinr, timeoutMs } = params
    const times = [new Date(nowMs), new Date(nowMs + this.#deps.pauseMs)] as const
    await tx.exec(insertToolServer, orgId, id, slug, name, url, kindOf(params), residency, priceUinr, timeoutMs, ...times)
    await this.#putHeader(tx, orgId, id, header)
    return id
  }

  async #putHeader(tx: Tx, orgId: number, id: string, header: ToolCredential | null): Promise<void> {
    if (header === null) await tx.exec(deleteToolCredential, orgId, id)
    else {
      const sealed = this.#deps.sealer.seal(header.value, toolCredentialOwner(orgId, id))
      await tx.exec(putToolCredential, orgId, id, header.name, sealed, maskSecret(header.value))
    }
  }

  /** Returns the server's header in plain text. Throws `bad_request` when it cannot be opened. */
  #headerOf(orgId: number, row: SealedToolServerRow): ToolCredential | null {
    try {
      return openCredential(this.#deps.sealer, orgId, row)
    } catch (cause) {
      throw fail('bad_request', { message: 'The saved header of this server cannot be opened any more. Send "auth" with the change.', cause })
    }
  }
}

async function locked(tx: Tx, orgId: number, id: string): Promise<SealedToolServerRow> {
  if ((await tx.maybe(lockToolServer, orgId, id)) === null) throw noToolServer()
  return tx.one(findToolServer, orgId, id)
}

const kindOf = ({ header, client }: Pick<ServerParams, 'header' | 'client'>): AuthKind => client?.kind ?? (header === null ? 'none' : 'header')

/** What a test found. The era null: the tools are read later, with the connection of a person. */
type TestedLook = PassedLook | (Look & { ok: false })
type PassedLook = Omit<Look & { ok: true }, 'era'> & { readonly era: (Look & { ok: true })['era'] | null }

interface Tested {
  readonly tried: TriedClient | null
  readonly look: TestedLook
}

const orgNews = (orgId: number): NewsItem => ({ kind: orgToolsChanged, ref: String(orgId) })
const offNews = (id: string): NewsItem => ({ kind: toolServerOff, ref: id })

/** Throws `bad_request` with the reason when a server could not be read. */
function passed(look: TestedLook): PassedLook {
  if (look.ok) return look
  throw fail('bad_request', {
    message: `The server did not pass the test and nothing was saved: ${look.message}.`,
    extra: { ok: false, check_error: look.error },
  })
}

const changedMeanwhile = (): GatewayError =>
  fail('bad_request', {
    message: 'Somebody else changed this server while it was tested. Look at it with GET /me/tool-servers, and send the change again.',
  })

const credentialNeededAgain = (): GatewayError =>
  fail('bad_request', {
    message:
      '"url" names another server or resource, and the credential that was kept is only for the one before. Send "auth" with it: the credential of the new server, or {"kind":"none"}.',
  })
