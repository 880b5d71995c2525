/** Rules of a webhook endpoint: its URL, its description, its subscription. Pure, except that the check of a URL may look names up. */
import { fail } from '../../platform/errors.ts'
import type { UrlGuard } from '../../platform/outbound/url-guard.ts'
import { type EventType, subscribable } from './events/event-catalog.ts'

const urlMaxChars = 2048
const descriptionMaxChars = 200

/** The events that an endpoint receives: all, also those of later builds, or those of the list. The list is kept while all are received. */
export interface Subscription {
  readonly subscribeAll: boolean
  /** In the order of the catalog. */
  readonly eventTypes: readonly EventType[]
}

/** What somebody says of it; what is left out is null. */
export interface SubscriptionParams {
  readonly subscribeAll: boolean | null
  readonly eventTypes: readonly string[] | null
}

/**
 * The URL in the form in which it is dialed; its path and query stay as they are. Throws `bad_request`: what is no URL, carries a fragment
 * or credentials, is plain http, or leads to an address that is not public, unless the operator permits it.
 */
export function checkedUrl(given: string, guard: UrlGuard): URL {
  const text = given.trim()
  const url = text.length <= urlMaxChars && URL.canParse(text) ? new URL(text) : null
  if (url === null)
    throw fail('bad_request', { message: `"url" must be a URL such as https://hooks.example.com/brigade, of at most ${urlMaxChars} characters.` })
  if (text.includes('#')) throw fail('bad_request', { message: '"url" must not carry a fragment (#…): it would never be sent.' })
  guard.check(url)
  return url
}

/** Plain text on one line, without spaces around it; '' means no text. Throws `bad_request`. */
export function checkedDescription(given: string): string {
  const text = given.trim()
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text) || [...text].length > descriptionMaxChars)
    throw fail('bad_request', { message: `"description" is one line of plain text, at most ${descriptionMaxChars} characters.` })
  return text.toWellFormed()
}

/**
 * Returns the subscription after a request; `before` is the present one, null for a new endpoint. Only `subscribe_all` decides whether all events are
 * received. A request that names only `event_types` gets only those. A request that names neither changes nothing, and a new endpoint then receives all.
 * Throws `bad_request` for an unknown type and for a subscription to nothing.
 */
export function subscriptionOf({ subscribeAll, eventTypes }: SubscriptionParams, before: Subscription | null): Subscription {
  const types = eventTypes === null ? (before?.eventTypes ?? []) : checkedTypes(eventTypes)
  const wantsAll = subscribeAll ?? (eventTypes === null ? (before?.subscribeAll ?? true) : false)
  if (!wantsAll && types.length === 0)
    throw fail('bad_request', { message: `Name at least one type in "event_types", or send "subscribe_all": true. ${knownTypes()}` })
  return { subscribeAll: wantsAll, eventTypes: types }
}

function checkedTypes(given: readonly string[]): EventType[] {
  const unknown = given.find(type => !subscribable.some(known => known === type))
  if (unknown === 'ping')
    throw fail('bad_request', { message: `"event_types": ping cannot be subscribed to; POST /me/webhooks/{id}/test sends one. ${knownTypes()}` })
  if (unknown !== undefined) throw fail('bad_request', { message: `"event_types": there is no event ${quoted(unknown)}. ${knownTypes()}` })
  return subscribable.filter(known => given.includes(known))
}

const knownTypes = (): string => `Events: ${subscribable.join(', ')}.`

/** What a caller typed, short and on one line. */
const quoted = (text: string): string => JSON.stringify(text.length <= 60 ? text : `${text.slice(0, 60)}…`)
