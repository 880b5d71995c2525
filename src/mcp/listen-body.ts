/** The body of `subscriptions/listen`. */
import { type ChangeWish, type ChangingList, SurfaceError } from './surface.ts'

/** A body with the method `subscriptions/listen`; the SDK checks the rest. */
export interface ListenBody {
  readonly [key: string]: unknown
  readonly params?: { readonly [key: string]: unknown; readonly notifications?: Record<string, unknown> }
}

/** Whether a body asks for a stream of changes. */
export function isListen(body: unknown): body is ListenBody {
  return typeof body === 'object' && body !== null && 'method' in body && body.method === 'subscriptions/listen'
}

const lists: readonly ChangingList[] = ['tools', 'prompts', 'resources']

/** What it asks to hear. Throws SurfaceError for URIs that are none. */
export function wishOf({ params }: ListenBody): ChangeWish {
  const filter = params?.notifications ?? {}
  const uris = Array.isArray(filter['resourceSubscriptions']) ? filter['resourceSubscriptions'] : []
  if (uris.some(uri => typeof uri !== 'string')) throw new SurfaceError('badParams', 'Invalid params: resourceSubscriptions is a list of URIs.')
  return { lists: lists.filter(list => filter[`${list}ListChanged`] === true), uris }
}

/** The body with the part of its wish that is granted, which the SDK acknowledges. */
export function narrowed(body: ListenBody, { lists: granted, uris }: ChangeWish): unknown {
  const filter = body.params?.notifications
  if (filter === undefined || typeof filter !== 'object') return body
  const notifications = {
    ...Object.fromEntries(granted.map(list => [`${list}ListChanged`, true])),
    ...(uris.length === 0 ? {} : { resourceSubscriptions: uris }),
  }
  return { ...body, params: { ...body.params, notifications } }
}
