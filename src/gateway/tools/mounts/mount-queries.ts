import { statement } from '../../../platform/db/db.ts'

/** A server that is on, with what a read of it needs. */
export interface MountedServer {
  readonly id: string
  readonly slug: string
  readonly url: string
  readonly timeoutMs: number | null
}

/** Returns the server of an organisation that has this slug and is on. */
export const findMountedServer = statement<[orgId: number, slug: string], MountedServer>(
  'tools.find_mounted_server',
  `select id, slug, url, timeout_ms as "timeoutMs" from tool_servers
   where org_id = $1::int and slug = $2::text and state = 'on' and deleted_at is null`,
)
