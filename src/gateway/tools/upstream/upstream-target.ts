/** A server of an organisation. */
export interface UpstreamTarget {
  readonly url: string
  /** The header with the credential, or null when the server takes none. */
  readonly header: { readonly name: string; readonly value: string } | null
  /** The time for a whole exchange, from its first byte to its end. Progress does not extend it. */
  readonly timeoutMs: number
}
