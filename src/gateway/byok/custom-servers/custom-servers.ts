import type { Clock } from '../../../platform/clock.ts'
import type { Db, Tx } from '../../../platform/db/db.ts'
import type { ControlLog } from '../../../platform/db/db-control-log.ts'
import { fail, GatewayError } from '../../../platform/errors.ts'
import type { CancelSignal } from '../../../platform/loop/cancellation.ts'
import type { Log } from '../../../platform/observe/log.ts'
import type { UrlGuard } from '../../../platform/outbound/url-guard.ts'
import type { AddressTests } from '../../../platform/security/address-tests.ts'
import { Secret } from '../../../platform/security/secret.ts'
import { maskSecret, type Sealer } from '../../../platform/security/secrets.ts'
import type { Model } from '../../catalog/model.ts'
import type { Provider } from '../../providers/provider.ts'
import type { Candidate, Compliance } from '../checks/compliance.ts'
import { untestable } from '../checks/compliance-run.ts'
import { type CustomRoute, orgRoutingChanged } from '../org-credentials.ts'
import { customReference } from './custom-route.ts'
import {
  type CustomServerRow,
  changeServer,
  deleteServer,
  findServer,
  findServerOwner,
  insertServer,
  listSealedServers,
  listServers,
  listSlugs,
  lockOrg,
  lockServer,
  noteCompliance,
  type SealedServerRow,
} from './custom-server-queries.ts'
import { checkedParams, type ServerChange, type ServerParams, slugFor } from './custom-server-rules.ts'

export interface CustomServersDeps {
  readonly db: Db
  readonly clock: Clock
  readonly log: Log
  readonly sealer: Sealer
  readonly controlLog: ControlLog
  /** The setting CUSTOM_ENDPOINTS. When it is false, servers can neither be registered nor used. Registered servers stay in the database. */
  readonly enabled: boolean
  readonly guard: UrlGuard
  readonly addressTests: Pick<AddressTests, 'take' | 'passed'>
  /** Public base URL of this gateway. */
  baseUrl(): string
  /** Returns a model of the current catalog. */
  modelOf(id: string): Model | undefined
  /** Tests a server. Throws `bad_request` for an address that a user may not reach. */
  test(candidate: Candidate, signal: CancelSignal): Promise<Compliance>
}

/** Maximum number of servers of one organisation. */
const serversMax = 50

/** OpenAI-compatible servers of organisations. The gateway tests a server before it saves it. It connects to the server only through the URL guard. */
export class CustomServers {
  readonly #deps: CustomServersDeps
  constructor(deps: CustomServersDeps) {
    this.#deps = deps
  }

  /** Throws `unavailable` while custom endpoints are switched off. */
  requireEnabled(): void {
    if (!this.#deps.enabled)
      throw fail('unavailable', { message: 'Custom endpoints are switched off here. The operator switches them on with CUSTOM_ENDPOINTS=on.' })
  }

  /** Returns the registered servers of an organisation, oldest first, with masked keys. */
  list(orgId: number): Promise<CustomServerRow[]> {
    return this.#deps.db.many(listServers, orgId)
  }

  /** Tests the server that `params` describe, and saves nothing. Throws `bad_name`, `bad_model`, `bad_request`, `rate_limit_exceeded`. */
  async test(orgId: number, params: ServerParams, signal: CancelSignal): Promise<Compliance> {
    const candidate = this.#candidate(this.#checked(params))
    return this.#rated(orgId, () => this.#deps.test(candidate, signal))
  }

  /** Tests a server, and saves it when it passes. When it fails, throws `bad_request` with the result. Also throws `cap` and the errors of `test`. */
  async register(orgId: number, given: ServerParams, signal: CancelSignal): Promise<CustomServerRow> {
    const params = this.#checked(given)
    const candidate = this.#candidate(params)
    checkRoom((await this.#deps.db.many(listSlugs, orgId)).length)
    const compliance = await this.#rated(orgId, () => this.#deps.test(candidate, signal))
    if (!compliance.pass) throw notCompliant(compliance)
    return this.#change(orgId, async tx => {
      await tx.one(lockOrg, orgId)
      const slugs = (await tx.many(listSlugs, orgId)).map(row => row.slug)
      checkRoom(slugs.length)
      return this.#insert(tx, orgId, slugFor(params.name, slugs), params, compliance)
    })
  }

  /**
   * Tests a registered server again and stores the result. The server continues to serve calls even when it fails. Throws `not_found`,
   * `rate_limit_exceeded`.
   */
  async retest(orgId: number, id: number, signal: CancelSignal): Promise<CustomServerRow> {
    const row = await this.#deps.db.maybe(findServer, orgId, id)
    if (row === null) throw notFound()
    const compliance = await this.#rated(orgId, () => this.#retry(orgId, row, signal))
    const now = new Date(this.#deps.clock.nowMs())
    return this.#change(
      orgId,
      async tx => {
        const noted = await tx.maybe(noteCompliance, orgId, id, JSON.stringify(compliance), now)
        if (noted === null) throw notFound()
        return noted
      },
      compliance.pass !== row.compliance.pass,
    )
  }

  /**
   * Changes the given fields of a server. Its slug never changes. Its key changes only if `params` has a key, and null removes the key. The saved key
   * is never sent to another origin, so a change of origin needs the key again. A change of the address, upstream model, model or key needs a passed
   * test. Throws `not_found` and the errors of `register`.
   */
  async change(orgId: number, id: number, params: ServerChange, signal: CancelSignal): Promise<CustomServerRow> {
    const before = await this.#deps.db.maybe(findServer, orgId, id)
    if (before === null) throw notFound()
    const { name, modelId, baseUrl, upstreamModel, residency, keySealed } = before
    if (params.key === undefined && keySealed !== null && params.baseUrl !== undefined && isElsewhere(params.baseUrl, baseUrl)) throw keyNeededAgain()
    // The saved key is opened only for the test. When the key does not change, its sealed text stays the same.
    const key = params.key === undefined ? this.#keyOf(orgId, before) : params.key
    const given = { name, model: modelId, baseUrl, upstreamModel, residency, ...params, key }
    const isTested = params.key !== undefined || given.baseUrl !== baseUrl || given.upstreamModel !== upstreamModel || given.model !== modelId
    const next = this.#checked(given)
    const candidate = this.#candidate(next)
    const compliance = isTested ? await this.#rated(orgId, () => this.#deps.test(candidate, signal)) : before.compliance
    if (isTested && !compliance.pass) throw notCompliant(compliance)
    const checkedAt = isTested ? new Date(this.#deps.clock.nowMs()) : before.checkedAt
    return this.#change(orgId, async tx => {
      const now = await tx.maybe(lockServer, orgId, id)
      if (now === null) throw notFound()
      if (now.keySealed !== keySealed || now.baseUrl !== baseUrl)
        throw fail('bad_request', {
          message: 'Somebody else changed this endpoint while it was tested. Look at it with GET /me/endpoints, and send the change again.',
        })
      const sealed = params.key === undefined ? keySealed : this.#sealed(orgId, before.slug, params.key)
      const mask = params.key === undefined ? before.keyMask : maskOf(params.key)
      return tx.one(
        changeServer,
        orgId,
        id,
        next.name,
        next.model,
        next.baseUrl,
        next.upstreamModel,
        sealed,
        mask,
        next.residency,
        JSON.stringify(compliance),
        checkedAt,
      )
    })
  }

  /** Removes a server. It gets no further calls. Throws `not_found`. */
  async remove(orgId: number, id: number): Promise<void> {
    await this.#change(orgId, async tx => {
      if ((await tx.maybe(deleteServer, orgId, id)) === null) throw notFound()
    })
  }

  /** Returns the registered servers of an organisation for routing. A server whose key cannot be opened is left out and logged. */
  async ofOrg(orgId: number): Promise<readonly CustomRoute[]> {
    if (!this.#deps.enabled) return []
    const rows = await this.#deps.db.many(listSealedServers, orgId)
    return rows.flatMap(row => {
      const provider = this.#providerOf(orgId, row)
      return provider === null ? [] : [{ slug: row.slug, modelId: row.modelId, provider, upstreamModel: row.upstreamModel, stateKey: `byoe#${row.id}` }]
    })
  }

  /** Runs one test and counts it against the organisation's rate of tests. A passed test does not count. */
  async #rated(orgId: number, test: () => Promise<Compliance>): Promise<Compliance> {
    const { addressTests } = this.#deps
    addressTests.take(orgId)
    const compliance = await test()
    if (compliance.pass) addressTests.passed(orgId)
    return compliance
  }

  #checked(params: ServerParams): ServerParams {
    return checkedParams(params, this.#deps.guard, this.#deps.baseUrl())
  }

  #candidate(params: ServerParams): Candidate {
    const model = this.#deps.modelOf(params.model)
    if (model?.kind !== 'chat') throw fail('bad_model', { message: '"model" must be the id of a chat model of the catalog. GET /v1/models lists the ids.' })
    const provider = customProvider('new', params, params.key === null ? null : new Secret(params.key))
    return { provider, upstreamModel: params.upstreamModel, expectsTools: model.tools }
  }

  async #insert(tx: Tx, orgId: number, slug: string, params: ServerParams, compliance: Compliance): Promise<CustomServerRow> {
    const { clock } = this.#deps
    const { name, model, baseUrl, upstreamModel, key, residency } = params
    const sealed = this.#sealed(orgId, slug, key)
    const mask = maskOf(key)
    const now = new Date(clock.nowMs())
    return tx.one(insertServer, orgId, slug, name, model, baseUrl, upstreamModel, sealed, mask, residency, JSON.stringify(compliance), now)
  }

  #sealed(orgId: number, slug: string, key: string | null): string | null {
    return key === null ? null : this.#deps.sealer.seal(key, serverKeyOwner(orgId, slug))
  }

  /** Returns the server's key in plain text, or null when it has none. Throws `bad_request` when the key cannot be opened. */
  #keyOf(orgId: number, row: SealedServerRow): string | null {
    try {
      return row.keySealed === null ? null : this.#deps.sealer.open(row.keySealed, serverKeyOwner(orgId, row.slug))
    } catch (cause) {
      throw fail('bad_request', { message: 'The saved key of this endpoint cannot be opened any more. Send "key" with the change.', cause })
    }
  }

  async #retry(orgId: number, row: SealedServerRow, signal: CancelSignal): Promise<Compliance> {
    const provider = this.#providerOf(orgId, row)
    if (provider === null) return untestable('its key cannot be opened any more: register the server again')
    try {
      const expectsTools = this.#deps.modelOf(row.modelId)?.tools ?? false
      return await this.#deps.test({ provider, upstreamModel: row.upstreamModel, expectsTools }, signal)
    } catch (error) {
      // The host name may resolve to a private address by now. The result of the test reports it.
      if (error instanceof GatewayError && error.errorName === 'bad_request') return untestable(error.message)
      throw error
    }
  }

  #providerOf(orgId: number, row: SealedServerRow): Provider | null {
    const { sealer, log } = this.#deps
    try {
      return customProvider(row.slug, row, row.keySealed === null ? null : new Secret(sealer.open(row.keySealed, serverKeyOwner(orgId, row.slug))))
    } catch {
      log.warn('custom_endpoint_key_unreadable', { orgId, provider: customReference(row.slug) })
      return null
    }
  }

  #change<T>(orgId: number, write: (tx: Tx) => Promise<T>, isNews = true): Promise<T> {
    const news = isNews ? [{ kind: orgRoutingChanged, ref: String(orgId) }] : []
    return this.#deps.controlLog.change(async tx => ({ value: await write(tx), news }))
  }
}

function customProvider(slug: string, server: Pick<CustomServerRow, 'name' | 'baseUrl' | 'residency'>, key: Secret | null): Provider {
  return {
    id: customReference(slug),
    name: server.name,
    dialect: 'openai',
    baseUrl: server.baseUrl,
    auth: key === null ? 'none' : 'bearer',
    residency: server.residency,
    byok: true,
    keyShape: null,
    quirks: [],
    platformKey: key,
    configured: true,
    userGiven: true,
  }
}

const maskOf = (key: string | null): string | null => (key === null ? null : maskSecret(key))

/** Returns true when a URL has another origin (scheme, host, port) than before. Returns false for an invalid URL, because the URL rules refuse it later. */
const isElsewhere = (given: string, before: string): boolean => URL.canParse(given) && new URL(given).origin !== new URL(before).origin

const keyNeededAgain = (): GatewayError =>
  fail('bad_request', {
    message:
      '"base_url" names another server, and the key that was kept is only for the one before. Send "key" with it: the key of the new server, or null for none.',
  })

function checkRoom(count: number): void {
  if (count >= serversMax) throw fail('cap', { message: `An organisation may have ${serversMax} custom endpoints. Remove one first.` })
}

function notCompliant(compliance: Compliance): GatewayError {
  const failed = compliance.checks.find(check => check.required && !check.pass)
  return fail('bad_request', {
    message: `The server did not pass the test and was not saved: ${failed?.name ?? 'test'}: ${failed?.detail ?? 'failed'}.`,
    extra: { ok: false, compliance: complianceView(compliance) },
  })
}

/** Returns a result in the shape of the API for people who may run tests. */
export function complianceView({ pass, checks }: Compliance) {
  return { pass, checks: checks.map(({ latencyMs, ...check }) => ({ ...check, latency_ms: latencyMs })) }
}

/** Returns the result for plain members: which checks passed and which failed. Causes and times are left out, because they reveal details of a network. */
export function complianceSummary({ pass, checks }: Compliance) {
  const detailOf = (isPassed: boolean): string => (isPassed ? 'passed' : 'failed; owners and admins see why')
  return { pass, checks: checks.map(({ name, required, pass: isPassed }) => ({ name, required, pass: isPassed, latency_ms: 0, detail: detailOf(isPassed) })) }
}

/** Returns the name that ties a sealed key to the row of its server. A key that is copied to another row cannot be opened. */
export const serverKeyOwner = (orgId: number, slug: string): string => `custom_endpoint:${orgId}:${slug}`

const notFound = (): GatewayError => fail('not_found', { message: 'There is no such custom endpoint.' })

/** Returns the organisation, slug and model of a registered server. Returns null when the server was deleted. */
export function serverOwner(db: Db, id: number): Promise<{ orgId: number; slug: string; modelId: string } | null> {
  return db.maybe(findServerOwner, id)
}
