import type { Sealer } from '../../../platform/security/secrets.ts'
import type { ToolCredential } from './callable-tool.ts'

/** Returns the name that ties the sealed header of a server to its row. A value that is copied to another row cannot be opened. */
export const toolCredentialOwner = (orgId: number, serverId: string): string => `tool_server:${orgId}:${serverId}`

/** The sealed header of a server, as its rows have it. Both are null when the server requires none. */
export interface SealedCredential {
  readonly id: string
  readonly headerName: string | null
  readonly headerSealed: string | null
}

/** Returns the header of a server in plain text, or null when it requires none. Throws an Error when the value cannot be opened. */
export function openCredential(sealer: Sealer, orgId: number, { id, headerName, headerSealed }: SealedCredential): ToolCredential | null {
  if (headerName === null || headerSealed === null) return null
  return { name: headerName, value: sealer.open(headerSealed, toolCredentialOwner(orgId, id)) }
}
