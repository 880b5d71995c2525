import type { CancelSignal } from '../../platform/cancellation.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db.ts'
import type { ControlLog } from '../../platform/db-control-log.ts'
import { fail, GatewayError } from '../../platform/errors.ts'
import type { Log } from '../../platform/log.ts'
import { Secret } from '../../platform/secret.ts'
import { maskSecret, type Sealer } from '../../platform/secrets.ts'
import type { UrlGuard } from '../../platform/url-guard.ts'
import type { Model } from '../catalog/model.ts'
import type { Provider } from '../providers/provider.ts'
import type { Candidate, Compliance } from './compliance.ts'
import { untestable } from './compliance-run.ts'
import { customReference } from './custom-route.ts'
import {
  type CustomServerRow,
  deleteServer,
  findServer,
  insertServer,
  listSealedServers,
  listServers,
  listSlugs,
  lockOrg,
  noteCompliance,
  type SealedServerRow,
} from './custom-server-queries.ts'
import { checkedWish, type ServerWish, slugFor } from './custom-server-rules.ts'
import { type CustomRoute, orgRoutingChanged } from './org-credentials.ts'

export interface CustomServersDeps {
  readonly db: Db
  readonly clock: Clock
  readonly log: Log
  readonly sealer: Sealer
  readonly controlLog: ControlLog
  /** CUSTOM_ENDPOINTS: false switches registering and using off; what is registered stays. */
  readonly enabled: boolean
  readonly guard: UrlGuard
  /** Public address of this gateway. */
  baseUrl(): string
  /** The model of the catalog, as it is now. */
  modelOf(id: string): Model | undefined
  /** Tries a server. Throws `bad_request` for an address that a user may not reach. */
  test(candidate: Candidate, signal: CancelSignal): Promise<Compliance>
}

/** Most servers of one organisation. */
const serversMax = 50

/** OpenAI-compatible servers that organisations have registered: tried before they are saved, dialed through the URL guard only. */
export class CustomServers {
  readonly #deps: CustomServersDeps
  constructor(deps: CustomServersDeps) {
    this.#deps = deps
  }

  /** Throws `unavailable` when custom endpoints are switched off here. */
  requireEnabled(): void {
    if (!this.#deps.enabled)
      throw fail('unavailable', { message: 'Custom endpoints are switched off here. The operator switches them on with CUSTOM_ENDPOINTS=on.' })
  }

  /** The registered servers of an organisation, oldest first; keys masked. */
  list(orgId: number): Promise<CustomServerRow[]> {
    return this.#deps.db.many(listServers, orgId)
  }

  /** Tries a server that is not saved. Throws `bad_name`, `bad_model`, `bad_request`. */
  test(wish: ServerWish, signal: CancelSignal): Promise<Compliance> {
    return this.#deps.test(this.#candidate(this.#checked(wish)), signal)
  }

  /** Tries a server and saves it when it passes. Throws as `test` does, `cap`, and `bad_request` with the result beside it when it does not pass. */
  async register(orgId: number, given: ServerWish, signal: CancelSignal): Promise<CustomServerRow> {
    const wish = this.#checked(given)
    const candidate = this.#candidate(wish)
    checkRoom((await this.#deps.db.many(listSlugs, orgId)).length)
    const compliance = await this.#deps.test(candidate, signal)
    if (!compliance.pass) throw notCompliant(compliance)
    return this.#change(orgId, async tx => {
      await tx.one(lockOrg, orgId)
      const slugs = (await tx.many(listSlugs, orgId)).map(row => row.slug)
      checkRoom(slugs.length)
      return this.#insert(tx, orgId, slugFor(wish.name, slugs), wish, compliance)
    })
  }

  /** Tries a registered server again and keeps the result; calls go on to it either way. Throws `not_found`. */
  async retest(orgId: number, id: number, signal: CancelSignal): Promise<CustomServerRow> {
    const row = await this.#deps.db.maybe(findServer, orgId, id)
    if (row === null) throw notFound()
    const compliance = await this.#retry(orgId, row, signal)
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

  /** Removes a server: no call is sent to it any more. Throws `not_found`. */
  async remove(orgId: number, id: number): Promise<void> {
    await this.#change(orgId, async tx => {
      if ((await tx.maybe(deleteServer, orgId, id)) === null) throw notFound()
    })
  }

  /** The registered servers of an organisation as routing takes them. One whose key does not open is left out, with a line in the log. */
  async ofOrg(orgId: number): Promise<readonly CustomRoute[]> {
    if (!this.#deps.enabled) return []
    const rows = await this.#deps.db.many(listSealedServers, orgId)
    return rows.flatMap(row => {
      const provider = this.#providerOf(orgId, row)
      return provider === null ? [] : [{ slug: row.slug, modelId: row.modelId, provider, upstreamModel: row.upstreamModel, stateKey: `byoe#${row.id}` }]
    })
  }

  #checked(wish: ServerWish): ServerWish {
    return checkedWish(wish, this.#deps.guard, this.#deps.baseUrl())
  }

  #candidate(wish: ServerWish): Candidate {
    const model = this.#deps.modelOf(wish.model)
    if (model?.kind !== 'chat') throw fail('bad_model', { message: '"model" must be the id of a chat model of the catalog. GET /v1/models lists the ids.' })
    const provider = customProvider('new', wish, wish.key === null ? null : new Secret(wish.key))
    return { provider, upstreamModel: wish.upstreamModel, expectsTools: model.tools }
  }

  async #insert(tx: Tx, orgId: number, slug: string, wish: ServerWish, compliance: Compliance): Promise<CustomServerRow> {
    const { sealer, clock } = this.#deps
    const { name, model, baseUrl, upstreamModel, key, residency } = wish
    const sealed = key === null ? null : sealer.seal(key, serverKeyOwner(orgId, slug))
    const mask = key === null ? null : maskSecret(key)
    const now = new Date(clock.nowMs())
    return tx.one(insertServer, orgId, slug, name, model, baseUrl, upstreamModel, sealed, mask, residency, JSON.stringify(compliance), now)
  }

  async #retry(orgId: number, row: SealedServerRow, signal: CancelSignal): Promise<Compliance> {
    const provider = this.#providerOf(orgId, row)
    if (provider === null) return untestable('its key cannot be opened any more: register the server again')
    try {
      const expectsTools = this.#deps.modelOf(row.modelId)?.tools ?? false
      return await this.#deps.test({ provider, upstreamModel: row.upstreamModel, expectsTools }, signal)
    } catch (error) {
      // A name that leads elsewhere by now is a finding like any other.
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

/** A result as it goes on the wire. */
export function complianceView({ pass, checks }: Compliance) {
  return { pass, checks: checks.map(({ latencyMs, ...check }) => ({ ...check, latency_ms: latencyMs })) }
}

/** Names the row that the sealed key of a server belongs to. */
export const serverKeyOwner = (orgId: number, slug: string): string => `custom_endpoint:${orgId}:${slug}`

const notFound = (): GatewayError => fail('not_found', { message: 'There is no such custom endpoint.' })
