import { statement } from '../platform/db.ts'

/**
 * The live workspaces whose team the caller is in, with the one that the key is bound to first, and the active spaces that the user owns
 * or was granted. A binding stands for the team where no user is behind the key, or one who may bind keys to any workspace; for a member
 * the team itself decides, so that who was taken out of it keeps nothing by a key. A user who is no active member has none.
 */
export const findMemberships = statement<
  [orgId: number, userId: number | null, workspaceId: number | null],
  { workspaceIds: number[]; sharedSpaces: string[] }
>(
  'memory.find_memberships',
  `select
     array(select w.id from workspaces w
       where w.org_id = $1::int and w.archived_at is null and (
         (w.id = $3::int and $2::int is null)
         or exists (select 1 from org_members m where m.org_id = $1::int and m.user_id = $2::int and m.status = 'active' and (
           (w.id = $3::int and m.role in ('admin', 'owner'))
           or exists (select 1 from workspace_members t where t.org_id = $1::int and t.workspace_id = w.id and t.user_id = $2::int))))
       order by w.id is distinct from $3::int, w.id) as "workspaceIds",
     array(select mine.space from (
         select s.space from memory_shares s where s.org_id = $1::int and s.owner_id = $2::int and s.state = 'active'
         union
         select s.space from memory_share_members g join memory_shares s on s.org_id = g.org_id and s.space = g.space and s.state = 'active'
         where g.org_id = $1::int and g.user_id = $2::int) mine
       where exists (select 1 from org_members m where m.org_id = $1::int and m.user_id = $2::int and m.status = 'active')
       order by mine.space) as "sharedSpaces"`,
)
