/** What a webhook endpoint may be: its URL, its description, what it subscribes to. Pure but for the clockless look at a URL. */
import { fail } from '../../platform/errors.ts'
import type { UrlGuard } from '../../platform/outbound/url-guard.ts'
import { type EventType, subscribable } from './events/event-catalog.ts'

const urlMaxChars = 2048
const descriptionMaxChars = 200

/** Which events an endpoint hears: all, those of later builds too, or those of the list. The list is kept while all are heard. */
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

/** Plain text on one line, without spaces around it; '' is none. Throws `bad_request`. */
export function checkedDescription(given: string): string {
  const text = given.trim()
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text) || [...text].length > descriptionMaxChars)
    throw fail('bad_request', { message: `"description" is one line of plain text, at most ${descriptionMaxChars} characters.` })
  return text.toWellFormed()
}

/**
 * The subscription after a request; `before` is the one that stands, null for a new endpoint. `subscribe_all` alone decides whether all is
 * heard; who names `event_types` without it wants only those; who names neither changes nothing, and a new endpoint then hears all.
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
