/**
 * Finds the id of the run in a request. A run is all calls of one job. Many clients send an id of their own with every call, without a setting. Only
 * header look-ups are made for a call without an id. Decisions 0792 and 0875 give the reasons for the order.
 */
import { fail } from '../../../platform/errors.ts'

type Headers = Readonly<Record<string, string | string[] | undefined>>

interface RunSource {
  readonly header: string
  /** Who sends the header without being asked. Null for a header with which the caller asks for a run: an invalid id is then an error. */
  readonly client: string | null
  /** Returns the id in the value of the header, or null when it has none. */
  readonly read: (value: string) => string | null
}

/** The headers that name a run, the first match first. */
export const runSources: readonly RunSource[] = [
  { header: 'x-br-run-id', client: null, read: value => value },
  { header: 'baggage', client: null, read: runIdOfBaggage },
  { header: 'x-claude-code-session-id', client: 'Claude Code', read: value => value },
  { header: 'session-id', client: 'Codex', read: value => value },
  { header: 'session_id', client: 'earlier versions of Codex', read: value => value },
  { header: 'x-parent-session-id', client: 'sub-agents of opencode', read: value => value },
  { header: 'x-session-id', client: 'opencode', read: value => value },
]

/** The form of an id. It can be sent as a header as it is. */
const shape = /^[\x21-\x7e](?:[\x20-\x7e]{0,254}[\x21-\x7e])?$/
const shapeText = '1 to 256 printable ASCII characters, without spaces at its ends'
/** The most characters of `metadata.user_id` that are parsed. Claude Code sends about 200. */
const metadataMaxChars = 2048

/** Returns true when the text can be the id of a run. */
export const isRunId = (text: string): boolean => shape.test(text)

/** Returns the id of the run that the headers name, or null. Throws `bad_request` for an invalid id in a header that asks for a run. */
export function runIdOfHeaders(headers: Headers): string | null {
  for (const { header, client, read } of runSources) {
    const value = headers[header]
    if (value === undefined || value === '') continue
    const id = read(typeof value === 'string' ? value : value.join(','))
    if (id === null || id === '') continue
    if (isRunId(id)) return id
    // A client's own header may mean something else, so a value of another form names no run.
    if (client === null) throw fail('bad_request', { message: `${header}: the id of a run must be ${shapeText}.` })
  }
  return null
}

/** Returns the member `br.run` of a W3C baggage text, or null. The value is percent-decoded. */
export function runIdOfBaggage(baggage: string): string | null {
  if (!baggage.includes('br.run')) return null
  for (const member of baggage.split(',')) {
    const [pair = ''] = member.split(';', 1)
    const at = pair.indexOf('=')
    if (at < 0 || pair.slice(0, at).trim() !== 'br.run') continue
    const value = pair.slice(at + 1).trim()
    try {
      return decodeURIComponent(value)
    } catch {
      // The value is not percent-encoded.
      return value
    }
  }
  return null
}

/** Returns the session in `metadata.user_id` of a messages body, or null. Claude Code sends JSON with `session_id` there. */
export function runIdOfMetadata(metadata: unknown): string | null {
  if (typeof metadata !== 'object' || metadata === null || !('user_id' in metadata)) return null
  const { user_id: text } = metadata
  if (typeof text !== 'string' || !text.startsWith('{') || text.length > metadataMaxChars) return null
  try {
    const user: unknown = JSON.parse(text)
    const id = typeof user === 'object' && user !== null && 'session_id' in user ? user.session_id : null
    return typeof id === 'string' && isRunId(id) ? id : null
  } catch {
    return null
  }
}

/** Returns the id of the run. The claim of a token decides. Throws `bad_request` when the request names another run than the claim. */
export function chosenRunId(claim: string | undefined, named: string | null): string | null {
  if (claim === undefined) return named
  if (named === null || named === claim) return claim
  throw fail('bad_request', { message: 'The token belongs to another run than the one that the request names. Send no id of a run, or that of the token.' })
}
