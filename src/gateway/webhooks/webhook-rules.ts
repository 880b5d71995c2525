/** Rules for the URL, description and subscription of a webhook endpoint. The functions are pure, but the check of a URL may resolve a host name. */
import { fail } from '../../platform/errors.ts'
import type { UrlGuard } from '../../platform/outbound/url-guard.ts'
import { type EventType, subscribable } from './events/event-catalog.ts'

const urlMaxChars = 2048
const descriptionMaxChars = 200

/**
 * The events that an endpoint receives: all events, including those of later versions, or those in the list. The list is stored even while the
 * endpoint receives all events.
 */
export interface Subscription {
  readonly subscribeAll: boolean
  /** The types, in the order of the catalog. */
  readonly eventTypes: readonly EventType[]
}

/** The requested subscription. An absent field is null. */
export interface SubscriptionParams {
  readonly subscribeAll: boolean | null
  readonly eventTypes: readonly string[] | null
}

/**
 * Returns the URL in the form in which it is called. Path and query do not change. Throws `bad_request` for an invalid URL, and for a fragment or
 * credentials in it. Throws `bad_request` also for plain http and for an address that is not public, unless the operator permits these.
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

/** Returns the description as one line without surrounding spaces. '' means no description. Throws `bad_request`. */
export function checkedDescription(given: string): string {
  const text = given.trim()
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text) || [...text].length > descriptionMaxChars)
    throw fail('bad_request', { message: `"description" is one line of plain text, at most ${descriptionMaxChars} characters.` })
  return text.toWellFormed()
}

/**
 * Returns the subscription after a request. `before` is the present subscription, or null for a new endpoint. Only `subscribe_all` switches the
 * receipt of all events on or off. A request with only `event_types` subscribes to those types. A request with neither field changes nothing, and a
 * new endpoint then receives all events. Throws `bad_request` for an unknown type and for an empty subscription.
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

/** Returns a caller's text in quotes, shortened and on one line. */
const quoted = (text: string): string => JSON.stringify(text.length <= 60 ? text : `${text.slice(0, 60)}…`)
