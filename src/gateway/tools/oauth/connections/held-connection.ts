import { Secret } from '../../../../platform/security/secret.ts'
import type { Sealer } from '../../../../platform/security/secrets.ts'
import type { ConnectionRow } from './connection-queries.ts'

/** Returns the name that ties a sealed token to its row. A token that is copied to another row cannot be opened. */
export const toolTokenOwner = (id: string, kind: 'access' | 'refresh'): string => `tool_connection:${id}:${kind}`

/** A connection in the memory of a process. It has the access token, and never the refresh token. */
export interface HeldConnection extends Omit<ConnectionRow, 'accessSealed' | 'refreshSealed'> {
  /** Null: there is no token, or it cannot be opened. */
  readonly access: Secret | null
}

/** Opens the access token of a connection. A token that cannot be opened counts as none, so that a new one is asked for. */
export function heldConnection(sealer: Sealer, { accessSealed, refreshSealed: _, ...row }: ConnectionRow): HeldConnection {
  return { ...row, access: opened(sealer, row.id, accessSealed) }
}

function opened(sealer: Sealer, id: string, sealed: string | null): Secret | null {
  try {
    return sealed === null ? null : new Secret(sealer.open(sealed, toolTokenOwner(id, 'access')))
  } catch {
    return null
  }
}
