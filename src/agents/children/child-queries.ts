import { statement } from '../../platform/db/db.ts'

export const activeChildIds = statement<[orgId: number, parentId: number], { id: number }>(
  'agents.active_child_ids',
  `select id from agents where org_id = $1::int and parent_id = $2::int and status = 'active'`,
)
