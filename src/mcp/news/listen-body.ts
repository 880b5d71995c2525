/** The body of `subscriptions/listen`. */
import { type ChangeParams, type ChangingList, SurfaceError } from '../surface.ts'

/** A body with the method `subscriptions/listen`. The SDK checks the other fields. */
export interface ListenBody {
  readonly [key: string]: unknown
  readonly params?: { readonly [key: string]: unknown; readonly notifications?: Record<string, unknown> }
}

/** Returns whether a body requests a stream of changes. */
export function isListen(body: unknown): body is ListenBody {
  return typeof body === 'object' && body !== null && 'method' in body && body.method === 'subscriptions/listen'
}

const lists: readonly ChangingList[] = ['tools', 'prompts', 'resources']

/** Returns what the client subscribes to. Throws SurfaceError for invalid URIs. */
export function paramsOf({ params }: ListenBody): ChangeParams {
  const filter = params?.notifications === undefined ? {} : params.notifications
  if (typeof filter !== 'object' || filter === null || Array.isArray(filter)) throw new SurfaceError('badParams', 'Invalid params: notifications is an object.')
  const { resourceSubscriptions: uris = [] } = filter
  if (!isListOfTexts(uris)) throw new SurfaceError('badParams', 'Invalid params: resourceSubscriptions is a list of URIs.')
  return { lists: lists.filter(list => filter[`${list}ListChanged`] === true), uris }
}

function isListOfTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every(each => typeof each === 'string')
}

/** Returns the body with its subscription reduced to the part that is granted. The SDK acknowledges this part. */
export function narrowed(body: ListenBody, { lists: granted, uris }: ChangeParams): unknown {
  const filter = body.params?.notifications
  if (filter === undefined || typeof filter !== 'object') return body
  const notifications = {
    ...Object.fromEntries(granted.map(list => [`${list}ListChanged`, true])),
    ...(uris.length === 0 ? {} : { resourceSubscriptions: uris }),
  }
  return { ...body, params: { ...body.params, notifications } }
}
