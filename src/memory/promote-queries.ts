import { statement } from '../platform/db.ts'

export const findLiveWorkspace = statement<[orgId: number, workspaceId: number], { id: number }>(
  'memory.find_live_workspace',
  `select id from workspaces where org_id = $1::int and id = $2::int and archived_at is null`,
)
