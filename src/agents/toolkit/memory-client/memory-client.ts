import { BrigadeError } from '../brigade-error.ts'
import { type GatewayClient, type GatewayOptions, type GatewayRequest, gatewayClient } from '../gateway-client.ts'
import { editObject, type MemoryChange } from './memory-client-edit.ts'
import { conditionHeaders, memoryRoot, objectOf, pagesOf, memoryRoot as root, signalled } from './memory-client-replies.ts'
import type {
  Abortable,
  MemoryConditions,
  MemoryHistoryPage,
  MemoryListed,
  MemoryListOptions,
  MemoryListPage,
  MemoryMatch,
  MemoryObjects,
  MemoryPageOptions,
  MemoryPaths,
  MemorySearchOptions,
  MemorySearchPage,
  MemoryShare,
  MemorySharesPage,
  MemoryVersion,
  MemoryWritten,
} from './memory-client-shapes.ts'

/** The members of a share. Only a full key with a user can change them. An agent cannot. */
export interface MemoryShares {
  /** Returns the open shares that the caller owns or belongs to. With `all`, owners and admins get every open share of the organisation. */
  list(options?: Abortable & { readonly all?: boolean | undefined }): AsyncIterable<MemoryShare>
  page(options?: MemoryPageOptions & { readonly all?: boolean | undefined }): Promise<MemorySharesPage>
  /** Opens a space that the caller owns. If the space exists already, the call adds the missing grants. */
  create(space: string, memberUids?: readonly number[], options?: Abortable): Promise<MemoryShare>
  grant(space: string, userId: number, options?: Abortable): Promise<MemoryShare>
  /** Withdraws a grant. It is safe to repeat. */
  revoke(space: string, userId: number, options?: Abortable): Promise<MemoryShare>
  /** Closes a share permanently. Its name is never used again. */
  retire(space: string, options?: Abortable): Promise<MemoryShare>
}

/**
 * Shared memory. Every refusal is a BrigadeError. Programs branch on `code`, such as `forbidden`, `memory_conflict`, `bad_memory_key` or
 * `memory_quota_exceeded`.
 */
export interface MemoryClient extends MemoryObjects {
  /** Returns the scopes of this credential. */
  paths(options?: Abortable): Promise<MemoryPaths>
  /**
   * Reads an object, calls `change` for the new content, and writes that content if nobody else wrote meanwhile. Otherwise it starts again, so
   * `change` may run more than once. `change` gets null when the object does not exist. It returns the content, null to delete, or undefined to
   * change nothing. `edit` returns null when nothing was written. Throws `memory_conflict` when other writers won each of `attempts` tries (default
   * 20).
   */
  edit(key: string, change: MemoryChange, options?: Abortable & { readonly attempts?: number | undefined }): Promise<MemoryWritten | null>
  /** Adds an entry, as a new object, to a folder such as `workspaces/3/journal`. Concurrent writers lose no entry. */
  append(path: string, content: string, options?: Abortable): Promise<MemoryWritten>
  /** Returns every readable key with this beginning, in order of keys. Pages are fetched as they are needed. */
  list(prefix?: string, options?: MemoryListOptions): AsyncIterable<MemoryListed>
  /** Returns one page. With `delimiter: '/'` it returns one level, with the folders as `prefixes`. */
  listPage(
    prefix?: string,
    options?: MemoryListOptions & { readonly cursor?: string | undefined; readonly delimiter?: string | undefined },
  ): Promise<MemoryListPage>
  /** Returns every line that contains the text. Pages are fetched as they are needed. */
  search(text: string, options?: MemorySearchOptions): AsyncIterable<MemoryMatch>
  searchPage(text: string, options?: MemorySearchOptions & { readonly cursor?: string | undefined }): Promise<MemorySearchPage>
  /** Returns every kept version, newest first. For a key that never existed it throws BrigadeError `not_found`. */
  history(key: string, options?: Abortable): AsyncIterable<MemoryVersion>
  historyPage(key: string, options?: MemoryPageOptions): Promise<MemoryHistoryPage>
  /** Writes an earlier version again, as a new version. */
  restore(key: string, version: string, conditions?: MemoryConditions): Promise<MemoryWritten>
  /** Writes a record of a workspace or of the organisation. It needs a full key of an owner or admin. `name` is a path below `records/`. */
  promote(
    name: string,
    content: string,
    options?: MemoryConditions & { readonly workspaceId?: number | undefined; readonly sourceKeys?: readonly string[] | undefined },
  ): Promise<{ readonly ok: true; readonly key: string; readonly etag: string }>
  readonly shares: MemoryShares
}

/** Returns the client for the shared memory of the gateway. JSON replies have the names of the API. */
export function memoryClient(gateway: GatewayClient | GatewayOptions): MemoryClient {
  const client = 'send' in gateway ? gateway : gatewayClient(gateway)
  const page = <T>(path: string, query: GatewayRequest['query'], signal: AbortSignal | undefined): Promise<T> =>
    client.json<T>('GET', `${root}/${path}`, { query: query ?? {}, ...signalled(signal) })

  const objects = memoryObjects(client)
  const listPage: MemoryClient['listPage'] = (prefix = '', { limit = 1000, cursor, delimiter, modifiedSince, author, signal } = {}) =>
    page('list', { prefix, limit, cursor, delimiter, modified_since: modifiedSince, author }, signal)
  const searchPage: MemoryClient['searchPage'] = (text, { regex, caseSensitive, prefix, limit, cursor, signal } = {}) =>
    page('search', { q: text, regex, case: caseSensitive, prefix, limit, cursor }, signal)
  const historyPage: MemoryClient['historyPage'] = (key, { limit, cursor, signal } = {}) => page('history', { key, limit, cursor }, signal)

  return {
    paths: ({ signal } = {}) => page('paths', {}, signal),
    ...objects,
    edit: (key, change, options) => editObject(objects, key, change, options),
    append: (path, content, { signal } = {}) => client.json('POST', `${root}/append`, { json: { path, content }, ...signalled(signal) }),
    list: (prefix, options) =>
      pagesOf(
        cursor => listPage(prefix, { ...options, cursor }),
        found => found.keys,
      ),
    listPage,
    search: (text, options) =>
      pagesOf(
        cursor => searchPage(text, { ...options, cursor }),
        found => found.matches,
      ),
    searchPage,
    history: (key, options) =>
      pagesOf(
        cursor => historyPage(key, { ...options, limit: 200, cursor }),
        found => found.versions,
      ),
    historyPage,
    restore: (key, version, conditions = {}) =>
      client.json('POST', `${root}/restore`, { json: { key, version }, headers: conditionHeaders(conditions), ...signalled(conditions.signal) }),
    promote: async (name, content, { workspaceId, sourceKeys, ...conditions } = {}) => {
      const reply = await client.send('POST', `${root}/promote`, {
        json: { name, content, workspace_id: workspaceId, source_keys: sourceKeys },
        headers: conditionHeaders(conditions),
        ...signalled(conditions.signal),
      })
      return { ...((await reply.json()) as { ok: true; key: string }), etag: reply.headers.get('etag') ?? '' }
    },
    shares: sharesOf(client),
  }
}

function sharesOf(client: GatewayClient): MemoryShares {
  const at = `${root}/shares`
  const memberAt = (space: string, userId: number): string => `${at}/${encodeURIComponent(space)}/members/${userId}`
  const page: MemoryShares['page'] = ({ all, limit, cursor, signal } = {}) =>
    client.json('GET', at, { query: { all: all === true ? true : undefined, limit, cursor }, ...signalled(signal) })
  return {
    list: options =>
      pagesOf(
        cursor => page({ ...options, cursor }),
        found => found.shares,
      ),
    page,
    create: (space, memberUids = [], { signal } = {}) => client.json('POST', at, { json: { space, member_uids: memberUids }, ...signalled(signal) }),
    grant: (space, userId, { signal } = {}) => client.json('PUT', memberAt(space, userId), signalled(signal)),
    revoke: (space, userId, { signal } = {}) => client.json('DELETE', memberAt(space, userId), signalled(signal)),
    retire: (space, { signal } = {}) => client.json('DELETE', `${at}/${encodeURIComponent(space)}`, signalled(signal)),
  }
}

/** Returns the reads and writes of single objects. `MemoryObjects` describes them. */
export function memoryObjects(client: GatewayClient): MemoryObjects {
  const write: MemoryObjects['write'] = async (key, content, conditions = {}) => {
    const reply = await client.send('PUT', `${memoryRoot}/o`, {
      query: { key },
      // Without this header, fetch would set a content type for text and none for bytes. The gateway stores both unchanged.
      headers: { 'content-type': 'application/octet-stream', ...conditionHeaders(conditions) },
      body: content,
      ...signalled(conditions.signal),
    })
    return { ...((await reply.json()) as Omit<MemoryWritten, 'etag'>), etag: reply.headers.get('etag') ?? '' }
  }
  const read: MemoryObjects['read'] = async (key, { version, signal } = {}) => {
    try {
      const path = version === undefined ? 'o' : 'history'
      return await objectOf(key, await client.send('GET', `${memoryRoot}/${path}`, { query: { key, version }, ...signalled(signal) }))
    } catch (failure) {
      if (failure instanceof BrigadeError && failure.code === 'not_found') return null
      throw failure
    }
  }
  const remove: MemoryObjects['remove'] = async (key, { ifMatch, eraseHistory, signal } = {}) => {
    await client.json('DELETE', `${memoryRoot}/o`, {
      query: { key, history: eraseHistory === true ? 'erase' : undefined },
      headers: conditionHeaders({ ifMatch }),
      ...signalled(signal),
    })
  }
  return { read, write, remove }
}
