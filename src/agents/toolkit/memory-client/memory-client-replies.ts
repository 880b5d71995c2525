/** Turns replies of the gateway into results of the memory client, and options of the client into headers. */
import type { MemoryConditions, MemoryObject, MemoryProvenance } from './memory-client-shapes.ts'

/** The paths of the memory calls. */
export const memoryRoot = '/v1/me/memory'

/** Returns the object in a reply to a read. */
export async function objectOf(key: string, reply: Response): Promise<MemoryObject> {
  const bytes = new Uint8Array(await reply.arrayBuffer())
  // A byte order mark is part of the text, so that a program that writes the text back does not lose it.
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
  // A proxy that compresses a reply marks its etag as weak, and conditional requests do not accept weak etags. The content is the same, so the mark
  // is removed.
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
 * Returns the decoded value of a header. Headers cannot contain every character, so the gateway percent-encodes names and keys. The owner of the
 * bucket may have set a value that is not encoded. Such a value is returned unchanged.
 */
function unescaped(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Returns the headers of a conditional write. */
export function conditionHeaders({ ifMatch, createOnly }: MemoryConditions): Record<string, string> {
  return { ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }), ...(createOnly === true ? { 'if-none-match': '*' } : {}) }
}

/** Yields every item of all pages. A page is fetched when the reader needs it. */
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

/** Returns the signal of a request as an option, when there is one. */
export function signalled(signal: AbortSignal | undefined): { signal?: AbortSignal } {
  return signal === undefined ? {} : { signal }
}
