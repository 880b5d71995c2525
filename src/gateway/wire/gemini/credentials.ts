/** Decides which header, or which parameter of the query, carries the gateway key of a call of Google's API. It is pure. */

type Headers = Readonly<Record<string, string | string[] | undefined>>

/** The beginning of every key of a gateway. */
const keyStart = 'br-'

/**
 * Returns the credential of the call in the one header that the rest of the gateway reads: `x-br-api-key`, `x-goog-api-key`, `Authorization: Bearer`, or
 * `key` in the query. The first one that begins like a gateway key counts, otherwise the first one that is given. The result is empty if the call has none.
 */
export function geminiCredential(headers: Headers, query: string): { authorization?: string } {
  const given = [
    textOf(headers['x-br-api-key']),
    textOf(headers['x-goog-api-key']),
    bearerOf(textOf(headers['authorization'])),
    query.includes('key=') ? textOf(new URLSearchParams(query).get('key') ?? undefined) : null,
  ].filter(text => text !== null)
  const found = given.find(text => bare(text).startsWith(keyStart)) ?? given[0]
  return found === undefined ? {} : { authorization: `Bearer ${bare(found)}` }
}

const bare = (text: string): string => bearerOf(text) ?? text

function textOf(value: string | string[] | undefined): string | null {
  const text = (Array.isArray(value) ? value[0] : value)?.trim()
  return text === undefined || text === '' ? null : text
}

const bearerOf = (header: string | null): string | null => /^bearer\s+(\S+)$/i.exec(header ?? '')?.[1] ?? null
