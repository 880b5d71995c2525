/**
 * Converts the author and the time of a write from the caller to the object's metadata, and from the metadata to the form that a reader sees. The functions
 * are pure.
 */
import type { Principal } from '../platform/security/principal.ts'
import type { ObjectHead } from './stores/object-store.ts'

/** The author of one write, as the index and the metadata store it. */
export interface Author {
  readonly userId: number | null
  /** Null for writes with a session, and for changes that the gateway makes by itself. */
  readonly keyId: number | null
  /** The id of the agent that authenticated with a token. */
  readonly agentId: number | null
  readonly agentName: string | null
  /** The value that a plain key sent in x-br-agent-id. It is not verified. */
  readonly agentLabel: string | null
}

/** The author in the form that lists and conflicts show. */
export interface AuthorView {
  /** User id, or `key-<id>` for a key without a user. */
  readonly user: string
  /** The agent id from a token, or a label in double quotes that a plain key sent. Because of the quotes, nobody can take a label for an id. */
  readonly agent?: string
  /** Present only with `agent`. True for an agent that authenticated with a token, false for a label. */
  readonly verified?: boolean
}

/** The names of the author in lists and in the history. */
export interface AuthorNameView {
  /** The name of the user, or of the key for a key without a user. Null when the gateway did not write the object. */
  readonly author_name: string | null
  /** Present only for an agent that authenticated with a token. A label has no name, because anybody can send any label. */
  readonly agent_name?: string
}

/** The author of changes by the gateway itself. */
export const nobody: Author = { userId: null, keyId: null, agentId: null, agentName: null, agentLabel: null }

/** Returns the author of a write with this credential. An agent token wins over the header. */
export function authorOf(principal: Principal, agentLabel: string | null): Author {
  const common = { userId: principal.userId, keyId: principal.kind === 'session' ? null : principal.keyId }
  return principal.kind === 'agent'
    ? { ...common, agentId: principal.agentId, agentName: principal.agentName, agentLabel: null }
    : { ...common, agentId: null, agentName: null, agentLabel }
}

/** Returns the object metadata of a write. Values are printable ASCII, and names are percent-encoded. */
export function metadataOf(author: Author, write: { readonly writeId: string; readonly sha256: string; readonly writtenAt: Date }): Record<string, string> {
  const agent = author.agentId === null ? author.agentLabel : String(author.agentId)
  return {
    'br-user': userText(author.userId, author.keyId),
    'br-ts': write.writtenAt.toISOString(),
    ...(agent === null ? {} : { 'br-agent': asciiOf(agent) }),
    ...(author.agentName === null ? {} : { 'br-agent-name': asciiOf(author.agentName) }),
    'br-write-id': write.writeId,
    'br-sha256': write.sha256,
  }
}

/** Maximum length of a client name that is kept, in characters. */
const clientCharsMax = 60

/** Returns the object metadata that name the client program. Empty when the client did not give its name. */
export function clientMetadata(clientName: string | undefined): Record<string, string> {
  return clientName === undefined ? {} : { 'br-client': asciiOf([...clientName.toWellFormed()].slice(0, clientCharsMax).join('')) }
}

const shown = ['user', 'ts', 'agent', 'agent-name', 'client', 'sha256', 'promoted-by', 'sources', 'restored-from'] as const

/**
 * Returns reply headers of a read: `x-br-meta-<name>` for metadata of the gateway. Other metadata of the bucket's owner is left out. The agent has the same
 * form as in lists: an id, or a label in quotes. `x-br-meta-agent-verified` says which form it has.
 */
export function metaHeaders(metadata: Readonly<Record<string, string>>): Record<string, string> {
  const headers: Record<string, string> = {}
  const author = agentInMetadata(metadata)
  if (author.verified !== undefined) headers['x-br-meta-agent-verified'] = String(author.verified)
  for (const name of shown) {
    const value = name === 'agent' ? author.agent : metadata[`br-${name}`]
    if (value !== undefined && /^[\x20-\x7e]{0,1024}$/.test(value)) headers[`x-br-meta-${name}`] = value
  }
  return headers
}

const yearTenThousandMs = Date.UTC(10_000, 0)

/** Returns when the object was written, by the gateway's own stamp, or by the store's clock when there is none. */
export function writtenMsOf(head: ObjectHead): number {
  const stamped = Date.parse(head.metadata['br-ts'] ?? '')
  const writtenMs = Number.isNaN(stamped) ? head.modifiedMs : stamped
  // The owner of the bucket can change metadata, and a database does not accept years of other lengths.
  return writtenMs >= 0 && writtenMs < yearTenThousandMs ? writtenMs : 0
}

/** Returns the author in an object's metadata. Returns null when the gateway did not write the object. */
export function authorInMetadata(metadata: Readonly<Record<string, string>>): AuthorView | null {
  const user = metadata['br-user']
  if (user === undefined) return null
  return { user, ...agentInMetadata(metadata) }
}

/**
 * Returns the agent in an object's metadata. A verified agent is stored with its id and its name, a label without a name. This also holds for objects of
 * earlier versions of the gateway. A client cannot set the name, so metadata with a name came from a token.
 */
function agentInMetadata(metadata: Readonly<Record<string, string>>): Pick<AuthorView, 'agent' | 'verified'> {
  const agent = metadata['br-agent']
  if (agent === undefined) return {}
  const isVerified = metadata['br-agent-name'] !== undefined && /^\d{1,15}$/.test(agent)
  return isVerified ? { agent, verified: true } : labelled(agent)
}

/** Returns a label in the quotes of JSON, so that the text of the label cannot end the quotes. */
function labelled(label: string): Pick<AuthorView, 'agent' | 'verified'> {
  return { agent: JSON.stringify(label), verified: false }
}

/** Returns the author of an index row. Returns null when the gateway did not write the object. A row without a key comes from a session. */
export function authorInRow(row: {
  readonly userId: number | null
  readonly keyId: number | null
  readonly agentId: number | null
  readonly agentLabel: string | null
}): AuthorView | null {
  if (row.keyId === null && row.userId === null) return null
  const user = userText(row.userId, row.keyId)
  if (row.agentId !== null) return { user, agent: String(row.agentId), verified: true }
  return row.agentLabel === null ? { user } : { user, ...labelled(row.agentLabel) }
}

function userText(userId: number | null, keyId: number | null): string {
  return userId === null ? `key-${keyId}` : String(userId)
}

function asciiOf(text: string): string {
  return text.replace(/[^\x20-\x24\x26-\x7e]/gu, char => encodeURIComponent(char))
}
