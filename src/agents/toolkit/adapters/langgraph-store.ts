import type { MemoryClient } from '../memory-client/memory-client.ts'
import { inParallel } from '../memory-client/memory-client-parallel.ts'
import { memoryPrefix } from '../memory-tool/memory-tool-mounts.ts'
import { type ItemPlace, itemOfKey, keyOfItem, prefixOfNamespace } from './langgraph-store-keys.ts'
import { checkNamespace, fitsCondition, fitsFilter, isLabel, type NamespaceCondition } from './langgraph-store-rules.ts'

/** An item as LangGraph shows it. */
export interface StoreItem {
  readonly value: Record<string, unknown>
  readonly key: string
  readonly namespace: string[]
  readonly createdAt: Date
  readonly updatedAt: Date
}

interface GetOperation {
  readonly namespace: readonly string[]
  readonly key: string
}
interface PutOperation extends GetOperation {
  /** Null deletes the item. */
  readonly value: Readonly<Record<string, unknown>> | null
}
interface SearchOperation {
  readonly namespacePrefix: readonly string[]
  readonly filter?: Readonly<Record<string, unknown>> | undefined
  readonly limit?: number | undefined
  readonly offset?: number | undefined
}
interface ListOperation {
  readonly matchConditions?: readonly NamespaceCondition[] | undefined
  readonly maxDepth?: number | undefined
  readonly limit?: number | undefined
  readonly offset?: number | undefined
}
/** One operation of a batch, in the shapes of `BaseStore.batch`. */
export type StoreOperation = GetOperation | PutOperation | SearchOperation | ListOperation

/** Maximum number of concurrent calls to the gateway of one batch. */
const parallelMax = 6

/**
 * Returns a store for LangGraph (`compile({ store })`). Its items are in shared memory below `root`, such as `agents/support/` or `users/7/graph/`.
 * Everybody who may read below that prefix shares the items. The store has every method of `BaseStore` of @langchain/langgraph-checkpoint. Values are
 * stored as JSON. A search filters items and returns them in the order of namespace and key. It does not rank by `query`. Throws BrigadeError, and
 * InvalidNamespaceError for a namespace that LangGraph does not allow. Decision 0266 says why.
 */
export function brigadeStore({ memory, root }: { readonly memory: MemoryClient; readonly root: string }): BrigadeStore {
  return new BrigadeStore(memory, memoryPrefix(root).slice(0, -1))
}

/** The store that `brigadeStore` returns. */
export class BrigadeStore {
  readonly #memory: MemoryClient
  readonly #root: string

  constructor(memory: MemoryClient, root: string) {
    this.#memory = memory
    this.#root = root
  }

  /**
   * Runs the operations of a batch. Reads see the state before the batch. When a batch writes an item more than once, the last write counts. The
   * caller names the type of the results.
   */
  async batch<Results>(operations: readonly StoreOperation[]): Promise<Results> {
    for (const operation of operations) if ('namespace' in operation) checkNamespace(operation.namespace)
    const results = await inParallel(operations, parallelMax, operation => this.#read(operation))
    const writes = new Map<string, PutOperation>()
    for (const operation of operations) if ('value' in operation) writes.set(keyOfItem(this.#root, operation), operation)
    await inParallel([...writes.values()], parallelMax, operation => this.#write(operation))
    return results as Results
  }

  async get(namespace: string[], key: string): Promise<StoreItem | null> {
    const [item = null] = await this.batch<[StoreItem | null]>([{ namespace, key }])
    return item
  }

  /** Returns the items that match. `limit` is 10 when it is left out. */
  async search(
    namespacePrefix: string[],
    options: { filter?: Record<string, unknown>; limit?: number; offset?: number; query?: string } = {},
  ): Promise<StoreItem[]> {
    const [items] = await this.batch<[StoreItem[]]>([{ namespacePrefix, ...options }])
    return items
  }

  async put(namespace: string[], key: string, value: Record<string, unknown>, _index?: false | string[]): Promise<void> {
    checkNamespace(namespace, { mayBeReserved: false })
    await this.batch([{ namespace, key, value }])
  }

  /** Deletes an item. Deleting a missing item is not an error. */
  async delete(namespace: string[], key: string): Promise<void> {
    await this.batch([{ namespace, key, value: null }])
  }

  /** Returns the namespaces that have items, in order. `limit` is 100 when it is left out. */
  async listNamespaces(options: { prefix?: string[]; suffix?: string[]; maxDepth?: number; limit?: number; offset?: number } = {}): Promise<string[][]> {
    const { prefix, suffix, maxDepth, limit = 100, offset = 0 } = options
    for (const path of [prefix, suffix]) if (path !== undefined) checkNamespace(path, { mayBeEmpty: true })
    const matchConditions: NamespaceCondition[] = [
      ...(prefix === undefined ? [] : [{ matchType: 'prefix' as const, path: prefix }]),
      ...(suffix === undefined ? [] : [{ matchType: 'suffix' as const, path: suffix }]),
    ]
    const [found] = await this.batch<[string[][]]>([{ matchConditions, maxDepth, limit, offset }])
    return found
  }

  /** Does nothing, because the first call connects. */
  start(): void {}
  /** Does nothing, because nothing needs to be stopped. */
  stop(): void {}

  #read(operation: StoreOperation): Promise<unknown> {
    if ('namespacePrefix' in operation) return this.#search(operation)
    if (!('namespace' in operation)) return this.#list(operation)
    return 'value' in operation ? Promise.resolve(null) : this.#item(operation)
  }

  async #item({ namespace, key }: GetOperation): Promise<StoreItem | null> {
    const found = await this.#memory.read(keyOfItem(this.#root, { namespace, key }))
    return found === null ? null : itemOf({ namespace, key }, found.text)
  }

  async #write({ namespace, key, value }: PutOperation): Promise<void> {
    const memoryKey = keyOfItem(this.#root, { namespace, key })
    if (value === null) return this.#memory.remove(memoryKey)
    await this.#memory.edit(memoryKey, current => {
      const before = current === null ? null : itemOf({ namespace, key }, current.text)
      if (current !== null && before === null) throw new Error(`${memoryKey} holds something that is no item of this store. Remove it, or use another root.`)
      const now = new Date().toISOString()
      // Each field is on its own line, so that a search of memory returns only the line of the field that matches.
      return `${JSON.stringify({ value, created_at: before?.createdAt.toISOString() ?? now, updated_at: now }, null, 1)}\n`
    })
  }

  async #search({ namespacePrefix, filter, limit = 10, offset = 0 }: SearchOperation): Promise<StoreItem[]> {
    checkNamespace(namespacePrefix, { mayBeEmpty: true })
    const fitting: StoreItem[] = []
    const places = this.#places(namespacePrefix)
    let skip = offset
    while (fitting.length < limit) {
      const next: ItemPlace[] = []
      for (let taken = await places.next(); taken.done !== true; taken = await places.next()) {
        // Without a filter every item matches, so the store need not read the skipped items.
        if (filter === undefined && skip > 0) skip--
        else next.push(taken.value)
        if (next.length >= Math.min(limit - fitting.length, parallelMax)) break
      }
      if (next.length === 0) break
      for (const item of await inParallel(next, parallelMax, place => this.#item(place))) {
        if (item === null || !fitsFilter(item.value, filter)) continue
        if (filter !== undefined && skip > 0) skip--
        else fitting.push(item)
      }
    }
    return fitting
  }

  async #list({ matchConditions = [], maxDepth, limit, offset = 0 }: ListOperation): Promise<string[][]> {
    const found = new Map<string, string[]>()
    for await (const { namespace } of this.#places(literalPrefixOf(matchConditions))) {
      if (!matchConditions.every(condition => fitsCondition(namespace, condition))) continue
      const shown = namespace.slice(0, maxDepth)
      found.set(shown.join(':'), shown)
    }
    const sorted = [...found].sort(([one], [other]) => one.localeCompare(other)).map(([, namespace]) => namespace)
    return sorted.slice(offset, limit === undefined ? undefined : offset + limit)
  }

  async *#places(namespace: readonly string[]): AsyncGenerator<ItemPlace, void, undefined> {
    for await (const { key } of this.#memory.list(prefixOfNamespace(this.#root, namespace))) {
      const place = itemOfKey(this.#root, key)
      // An object without a namespace, or with an invalid namespace, belongs to another program.
      if (place !== null && place.namespace.length > 0 && place.namespace.every(isLabel)) yield place
    }
  }
}

/** Returns the literal labels at the beginning of every matching namespace. */
function literalPrefixOf(conditions: readonly NamespaceCondition[]): readonly string[] {
  const path = conditions.find(({ matchType }) => matchType === 'prefix')?.path ?? []
  const wild = path.indexOf('*')
  return wild < 0 ? path : path.slice(0, wild)
}

/** Returns the item in the text of an object. Returns null when the text is not an item, because other programs may have written any text there. */
function itemOf({ namespace, key }: ItemPlace, text: string): StoreItem | null {
  let stored: Partial<Record<'value' | 'created_at' | 'updated_at', unknown>> | null
  try {
    stored = JSON.parse(text)
  } catch {
    return null
  }
  const value = stored?.value
  const [createdAt, updatedAt] = [dateOf(stored?.created_at), dateOf(stored?.updated_at)]
  if (typeof value !== 'object' || value === null || createdAt === null || updatedAt === null) return null
  return { value: value as Record<string, unknown>, key, namespace: [...namespace], createdAt, updatedAt }
}

function dateOf(text: unknown): Date | null {
  const date = typeof text === 'string' ? new Date(text) : null
  return date === null || Number.isNaN(date.getTime()) ? null : date
}
