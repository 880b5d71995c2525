/** Turns replies of the gateway into results of the memory client, and its options into headers. */
import type { MemoryConditions, MemoryObject, MemoryProvenance } from './memory-client-shapes.ts'

/** The paths of the memory calls. */
export const memoryRoot = '/v1/me/memory'

/** The object in a reply to a read. */
export async function objectOf(key: string, reply: Response): Promise<MemoryObject> {
  const bytes = new Uint8Array(await reply.arrayBuffer())
  // A byte order mark is part of the text: a program that writes the text back must not lose it.
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
  // A proxy that compresses marks the etag as weak, which no condition accepts. The content is the same.
  const etag = reply.headers.get('etag')?.replace(/^W\//, '') ?? ''
  return { key, bytes, text, etag, provenance: provenanceOf(reply.headers) }
}

function provenanceOf(headers: Headers): MemoryProvenance {
  const meta = (name: string): string | null => headers.get(`x-br-meta-${name}`)
  const name = meta('agent-name')
  const client = meta('client')
  return {
    user: meta('user'),
    agent: meta('agent'),
    verified: meta('agent') === null ? null : meta('agent-verified') === 'true',
    agentName: name === null ? null : unescaped(name),
    client: client === null ? null : unescaped(client),
    at: meta('ts'),
    sha256: meta('sha256'),
    promotedBy: meta('promoted-by'),
    sources: (meta('sources') ?? '')
      .split(',')
      .filter(source => source !== '')
      .map(unescaped),
    restoredFrom: meta('restored-from'),
  }
}

/**
 * Headers cannot carry every character, so names and keys arrive percent-encoded. A value that is not, because the owner of the bucket wrote it, stays
 * as it is.
 */
function unescaped(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The headers of a conditional write. */
export function conditionHeaders({ ifMatch, createOnly }: MemoryConditions): Record<string, string> {
  return { ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }), ...(createOnly === true ? { 'if-none-match': '*' } : {}) }
}

/** Yields every item of pages that are fetched one after the other, as the reader takes them. */
export async function* pagesOf<Page extends { readonly next_cursor: string | null }, Item>(
  fetchPage: (cursor: string | undefined) => Promise<Page>,
  itemsOf: (page: Page) => readonly Item[],
): AsyncGenerator<Item, void, undefined> {
  let cursor: string | undefined
  do {
    const page = await fetchPage(cursor)
    yield* itemsOf(page)
    cursor = page.next_cursor ?? undefined
  } while (cursor !== undefined)
}

/** The signal of a request, when there is one. */
export function signalled(signal: AbortSignal | undefined): { signal?: AbortSignal } {
  return signal === undefined ? {} : { signal }
}
