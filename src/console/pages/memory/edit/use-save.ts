import { useMutation } from '@tanstack/react-query'
import { ApiError, apiErrorOf } from '../../../api/api-error.ts'
import { type WriteCondition, writeText } from '../../../api/bytes.ts'
import { api } from '../../../api/call.ts'
import { isRecord } from '../places.ts'
import { bytesAddress, type MemoryObject, memoryChanged, readObject } from '../use-memory.ts'

/** What a person began to edit: the text, and its ETag. Null when the object does not exist yet. */
export interface Base {
  readonly text: string
  readonly etag: string | null
  /** Keys that a record names as its sources. They stay when the record is changed. */
  readonly sources: readonly string[]
}

/** What somebody else wrote meanwhile. */
export interface Theirs {
  /** Null when it is not text, or gone. */
  readonly text: string | null
  /** Null when the object is gone. */
  readonly etag: string | null
  readonly by: string | null
}

export type SaveResult = { readonly isSaved: true } | { readonly isSaved: false; readonly theirs: Theirs }

/** Returns what an object is based on when a person begins to edit it. */
export function baseOf(object: MemoryObject & { readonly text: string }): Base {
  return { text: object.text, etag: object.etag, sources: sourcesOf(object) }
}

/** Returns the keys that a record names as its sources. */
export function sourcesOf({ meta }: MemoryObject): string[] {
  const keys = (meta.get('sources') ?? '').split(',').filter(key => key !== '')
  try {
    return keys.map(key => decodeURI(key).replaceAll('%2C', ','))
  } catch {
    return keys
  }
}

/**
 * Saves a text if the object is still the one that the person began with. If somebody was faster, the result has what is there now. A text that somebody else
 * saved in the same way counts as saved.
 */
export function useSave(key: string, onSaved: () => void) {
  return useMutation({
    mutationFn: ({ text, base }: { text: string; base: Base }) => save(key, text, base),
    onSuccess: async ({ isSaved }) => {
      if (isSaved) onSaved()
      await memoryChanged()
    },
  })
}

async function save(key: string, text: string, base: Base): Promise<SaveResult> {
  const condition: WriteCondition = base.etag === null ? { ifNoneMatch: '*' } : { ifMatch: base.etag }
  try {
    await put(key, text, base, condition)
    return { isSaved: true }
  } catch (error) {
    if (apiErrorOf(error).status !== 412) throw error
  }
  const theirs = await readTheirs(key)
  if (theirs.text === text) return { isSaved: true }
  // Somebody saved the text that the person began with, so there is nothing to merge.
  if (theirs.text === base.text && theirs.etag !== null) {
    await put(key, text, base, { ifMatch: theirs.etag })
    return { isSaved: true }
  }
  return { isSaved: false, theirs }
}

/** Writes the text. A record is written by promotion, because nothing else may change it. */
async function put(key: string, text: string, { sources }: Base, condition: WriteCondition): Promise<void> {
  const [, workspace, name] = /^(?:org|workspaces\/([^/]+))\/records\/(.+)$/.exec(key) ?? []
  if (!isRecord(key) || name === undefined) {
    await writeText(bytesAddress(key), text, condition)
    return
  }
  const body = { name, content: text, source_keys: [...sources], ...(workspace === undefined ? {} : { workspace_id: workspace }) }
  await api('promoteConsole', { body, ...condition })
}

async function readTheirs(key: string): Promise<Theirs> {
  try {
    const [object, { versions }] = await Promise.all([readObject(key), api('historyConsole', { query: { key, limit: 1 } })])
    const [current] = versions
    return { text: object.text, etag: object.etag, by: current?.agent_name ?? current?.author_name ?? null }
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error
    return { text: null, etag: null, by: null }
  }
}
