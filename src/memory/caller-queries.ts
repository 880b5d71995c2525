import { statement } from '../platform/db.ts'

/**
 * The live workspaces whose team the user is in, with the one that the key is bound to first, and the active spaces that the user owns
 * or was granted. A user who is no active member of the organisation has none.
 */
export const findMemberships = statement<
  [orgId: number, userId: number | null, workspaceId: number | null],
  { workspaceIds: number[]; sharedSpaces: string[] }
>(
  'memory.find_memberships',
  `select
     array(select w.id from workspaces w
       where w.org_id = $1::int and w.archived_at is null and (w.id = $3::int or exists (
         select 1 from workspace_members t join org_members m on m.org_id = t.org_id and m.user_id = t.user_id and m.status = 'active'
         where t.org_id = $1::int and t.workspace_id = w.id and t.user_id = $2::int))
       order by w.id is distinct from $3::int, w.id) as "workspaceIds",
     array(select s.space from memory_shares s
       where s.org_id = $1::int and s.state = 'active'
         and exists (select 1 from org_members m where m.org_id = $1::int and m.user_id = $2::int and m.status = 'active')
         and (s.owner_id = $2::int or exists (
           select 1 from memory_share_members g where g.org_id = $1::int and g.space = s.space and g.user_id = $2::int))
       order by s.space) as "sharedSpaces"`,
)
