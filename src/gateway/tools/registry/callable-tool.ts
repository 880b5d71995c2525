/** What the registry gives to the path of a call: the approved tools of an organisation, as every process keeps them in memory. */

/** The definition of a tool as its server lists it. Members that Brigade does not know are kept. */
export type ListedTool = Readonly<Record<string, unknown>> & { readonly name: string }

/** An approved tool that can be called. */
export interface CallableTool {
  /** Id of the tool. The owner of its running calls is `tool:<toolId>`. */
  readonly toolId: string
  /** Id of its server. The owner of its running calls is `tool_server:<serverId>`. */
  readonly serverId: string
  readonly slug: string
  /** The name that the server knows. */
  readonly upstreamName: string
  /** The name that callers use: `slug__tool`. */
  readonly publicName: string
  /** The approved definition. */
  readonly definition: ListedTool
  /** SHA-256 of its canonical form, in hexadecimal. */
  readonly hash: string
  /** What the organisation charges for a call, in micro-rupees. */
  readonly priceUinr: bigint
  readonly timeoutMs: number
  readonly url: string
  readonly residency: 'india' | 'global'
}

/** What a server requires: nothing, a header, tokens of the organisation, or tokens of the person behind the call. */
export type AuthKind = 'none' | 'header' | 'client_credentials' | 'oauth_user'

/** A header that a server requires, in plain text. */
export interface ToolCredential {
  readonly name: string
  readonly value: string
}

/** The tools of one organisation that can be called. The value does not change. A new state is a new value. */
export interface OrgTools {
  byName(publicName: string): CallableTool | undefined
  /** Returns every tool, sorted by public name in the order of code points. */
  all(): readonly CallableTool[]
  /** Returns the header for a server, or null when the server requires none. */
  credential(serverId: string): ToolCredential | null
  /** Returns what a server requires. A server that is not in the catalog requires nothing. */
  authKind(serverId: string): AuthKind
}

/** The tools of organisations in memory. A warm look-up needs no database. */
export interface ToolCatalog {
  /**
   * Returns the tools of an organisation. This process sees a new state immediately, and other processes see it within 2 s. Rejects when the database
   * does not answer and nothing is cached.
   */
  of(orgId: number): Promise<OrgTools>
}
