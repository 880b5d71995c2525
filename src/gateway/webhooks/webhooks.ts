/** Creates, changes, enables, disables and removes the webhook endpoints of an organisation, and rotates their secrets. */
import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db/db.ts'
import { fail, type GatewayError } from '../../platform/errors.ts'
import { BlockedAddressError, type UrlGuard } from '../../platform/outbound/url-guard.ts'
import type { AddressTests } from '../../platform/security/address-tests.ts'
import type { Sealer } from '../../platform/security/secrets.ts'
import type { Ids } from '../../platform/values/ids.ts'
import { endOpenDeliveries } from './delivery/delivery-list-queries.ts'
import { type EventType, subscribable } from './events/event-catalog.ts'
import {
  changeWebhook,
  countWebhooks,
  deleteWebhook,
  insertWebhook,
  listWebhooks,
  lockOrg,
  lockWebhook,
  nextWebhookId,
  replaceSecret,
  switchWebhook,
  type WebhookRow,
} from './webhook-queries.ts'
import { checkedDescription, checkedUrl, type Subscription, type SubscriptionParams, subscriptionOf } from './webhook-rules.ts'
import { newWebhookSecret, sealWebhookSecret } from './webhook-secret.ts'

export interface WebhooksDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly sealer: Sealer
  readonly guard: UrlGuard
  readonly addressTests: Pick<AddressTests, 'take' | 'passed'>
  /** The setting WEBHOOK_ENDPOINTS_MAX. */
  readonly endpointsMax: number
}

export interface WebhookParams extends SubscriptionParams {
  readonly url: string
  readonly description: string
}

/** The requested change. A field that is null does not change. */
export interface WebhookChange extends SubscriptionParams {
  readonly description: string | null
  readonly enabled: boolean | null
}

/** A webhook with its new secret. The secret is shown only here. */
export interface WebhookWithSecret {
  readonly webhook: WebhookRow
  readonly secret: string
}

/** An endpoint that receives the event, with the value that `inTx` returned. */
export interface EnsuredWebhook<T> {
  readonly made: T
  readonly webhook: WebhookRow
  /** The secret of a new endpoint, which is shown only here. Null for an existing endpoint. */
  readonly secret: string | null
}

/** The `disabled_reason` of an endpoint that a person disabled. */
export const byHand = 'manual'

export const noWebhook = (): GatewayError => fail('not_found', { message: 'There is no such webhook. GET /me/webhooks lists those of this organisation.' })

export class Webhooks {
  readonly #deps: WebhooksDeps
  constructor(deps: WebhooksDeps) {
    this.#deps = deps
  }

  /** Returns all endpoints of the organisation, oldest first. */
  list(orgId: number): Promise<WebhookRow[]> {
    return this.#deps.db.many(listWebhooks, orgId)
  }

  /**
   * Creates an endpoint. It receives events from the commit on. Throws `bad_request` for a URL that the gateway may not call, an invalid
   * description, an unknown event, or an empty subscription. Throws `cap` and `rate_limit_exceeded`.
   */
  async create(orgId: number, userId: number, params: WebhookParams): Promise<WebhookWithSecret> {
    const { db, ids } = this.#deps
    const url = await this.#reachable(orgId, params.url)
    const description = checkedDescription(params.description)
    const subscription = subscriptionOf(params, null)
    const secret = newWebhookSecret(ids)
    const webhook = await db.tx(async tx => {
      await tx.one(lockOrg, orgId)
      return this.#insert(tx, orgId, userId, { url: url.href, description, ...subscription }, secret)
    })
    return { webhook, secret }
  }

  /**
   * Makes sure that the endpoint with this URL receives one type of event. Creates the endpoint when there is none. `inTx` runs in the same
   * transaction and gets the stored URL. The secret is null for an existing endpoint. Throws the errors of `create`, and `bad_request` for a disabled
   * endpoint.
   */
  async ensure<T>(orgId: number, userId: number, given: string, type: EventType, inTx: (tx: Tx, url: string) => Promise<T>): Promise<EnsuredWebhook<T>> {
    const { db, ids } = this.#deps
    const { href } = await this.#reachable(orgId, given)
    const secret = newWebhookSecret(ids)
    return db.tx(async tx => {
      await tx.one(lockOrg, orgId)
      const same = (await tx.many(listWebhooks, orgId)).filter(({ url }) => url === href)
      const found = same.find(({ enabled }) => enabled)
      if (found === undefined && same.length > 0)
        throw fail('bad_request', {
          message: `The webhook ${same[0]?.id} of this URL is disabled. Enable it first: PATCH /me/webhooks/${same[0]?.id} with "enabled": true.`,
        })
      if (found === undefined) {
        const webhook = await this.#insert(tx, orgId, userId, { url: href, description: '', subscribeAll: false, eventTypes: [type] }, secret)
        return { made: await inTx(tx, href), webhook, secret }
      }
      if (found.subscribeAll || found.eventTypes.includes(type)) return { made: await inTx(tx, href), webhook: found, secret: null }
      const { description, eventTypes } = await lockedWebhook(tx, orgId, found.id)
      const heard = subscribable.filter(known => known === type || eventTypes.includes(known))
      const webhook = await tx.one(changeWebhook, orgId, found.id, description, false, heard)
      return { made: await inTx(tx, href), webhook, secret: null }
    })
  }

  /**
   * Changes the given fields. Disabling ends the open deliveries. Enabling sets the failures to 0. Events that happened while the endpoint was
   * disabled are not sent. Throws `not_found`, and `bad_request` as `create` does.
   */
  change(orgId: number, id: number, params: WebhookChange): Promise<WebhookRow> {
    return this.#deps.db.tx(async tx => {
      const before = await lockedWebhook(tx, orgId, id)
      const description = params.description === null ? before.description : checkedDescription(params.description)
      const { subscribeAll, eventTypes } = subscriptionOf(params, before)
      const changed = await tx.one(changeWebhook, orgId, id, description, subscribeAll, eventTypes)
      if (params.enabled === null || params.enabled === before.enabled) return changed
      // This is needed also when the endpoint is enabled, because an event that committed while it was being disabled may have left a delivery.
      await tx.exec(endOpenDeliveries, orgId, id, 'endpoint_disabled', this.#now())
      return tx.one(switchWebhook, orgId, id, params.enabled ? null : byHand)
    })
  }

  /** Gives the endpoint a new secret. Deliveries after the commit are signed only with it. Throws `not_found`. */
  rotateSecret(orgId: number, id: number): Promise<WebhookWithSecret> {
    const { db, ids, sealer } = this.#deps
    const secret = newWebhookSecret(ids)
    return db.tx(async tx => {
      const webhook = await lockedWebhook(tx, orgId, id)
      await tx.exec(replaceSecret, orgId, id, sealWebhookSecret(sealer, id, secret))
      return { webhook, secret }
    })
  }

  /** Removes the endpoint and ends its open deliveries. Throws `not_found`. */
  remove(orgId: number, id: number): Promise<void> {
    return this.#deps.db.tx(async tx => {
      if ((await tx.maybe(deleteWebhook, orgId, id)) === null) throw noWebhook()
      await tx.exec(endOpenDeliveries, orgId, id, 'endpoint_deleted', this.#now())
    })
  }

  /** Inserts the endpoint. The caller has locked the organisation. Throws `cap`. */
  async #insert(tx: Tx, orgId: number, userId: number, params: Subscription & { url: string; description: string }, secret: string): Promise<WebhookRow> {
    const { clock, sealer, endpointsMax } = this.#deps
    const { count } = await tx.one(countWebhooks, orgId)
    if (count >= endpointsMax) throw fail('cap', { message: `An organisation may have ${endpointsMax} webhooks. Delete one first.` })
    const { id } = await tx.one(nextWebhookId)
    const sealed = sealWebhookSecret(sealer, id, secret)
    const { url, description, subscribeAll, eventTypes } = params
    return tx.one(insertWebhook, orgId, id, url, description, subscribeAll, eventTypes, sealed, userId, new Date(clock.nowMs()))
  }

  /**
   * Checks the URL and resolves its host name. The look-up counts as one of the organisation's address tests, but it uses up no test when the address
   * is public. Throws `bad_request`, `rate_limit_exceeded`.
   */
  async #reachable(orgId: number, given: string): Promise<URL> {
    const { guard, clock, addressTests } = this.#deps
    const url = checkedUrl(given, guard)
    addressTests.take(orgId)
    const leads = await whereItLeads(url, guard, clock)
    if (leads === 'outside') addressTests.passed(orgId)
    if (leads === 'nowhere')
      throw fail('bad_request', {
        message: `The name ${JSON.stringify(url.hostname)} in "url" does not resolve to any address. Check it, or register the webhook once the name exists.`,
      })
    if (leads === 'inside') {
      const port = url.port === '' ? (url.protocol === 'https:' ? '443' : '80') : url.port
      throw fail('bad_request', {
        message: `The host of "url" leads to a private, loopback or otherwise reserved address. Only the operator can permit it, by listing ${url.hostname}:${port} in OUTBOUND_ALLOW.`,
      })
    }
    return url
  }

  #now(): Date {
    return new Date(this.#deps.clock.nowMs())
  }
}

/** Returns the endpoint, locked until the transaction ends. Throws `not_found`. */
export async function lockedWebhook(tx: Tx, orgId: number, id: number): Promise<WebhookRow> {
  const found = await tx.maybe(lockWebhook, orgId, id)
  if (found === null) throw noWebhook()
  return found
}

/** Longest wait for a name server when an endpoint is saved, in milliseconds. */
const patienceMs = 2_000

/**
 * Codes of a name server for a name without an address. Other errors, such as a slow or broken server of the operator, are not the user's
 * mistake.
 */
const noSuchName = new Set(['ENOTFOUND', 'ENODATA'])

/**
 * Where the host of a URL leads. `outside`: to a public address. `inside`: to an address that users may not reach. `nowhere`: the name has no
 * address. `unknown`: there was no answer in time. Each delivery checks the address again.
 */
export type Leads = 'outside' | 'inside' | 'nowhere' | 'unknown'

/** Returns where the host of a URL leads now. `localhost` and names of the local network lead inside. Hosts in OUTBOUND_ALLOW lead outside. */
export function whereItLeads(url: URL, guard: UrlGuard, clock: Clock): Promise<Leads> {
  if (guard.isAllowed(url)) return Promise.resolve('outside')
  return new Promise(resolve => {
    const stop = clock.after(patienceMs, () => resolve('unknown'))
    guard.lookup(url.hostname, { all: true }, error => {
      stop()
      if (error === null) return resolve('outside')
      if (error instanceof BlockedAddressError) return resolve('inside')
      resolve(noSuchName.has(error.code ?? '') ? 'nowhere' : 'unknown')
    })
  })
}
