import { statement } from '../../../platform/db/db.ts'

export interface WorkspaceRow {
  readonly id: number
  readonly name: string
  readonly isArchived: boolean
  /** User ids of the team. */
  readonly memberUids: readonly number[]
}

/** The columns of a workspace, with the alias `w`. */
export const workspaceColumns = `w.id, w.name, w.archived_at is not null as "isArchived",
     array(select t.user_id from workspace_members t where t.workspace_id = w.id order by t.user_id) as "memberUids"`

export const findWorkspace = statement<[orgId: number, id: number], WorkspaceRow>(
  'orgs.find_workspace',
  `select ${workspaceColumns} from workspaces w where w.org_id = $1::int and w.id = $2::int`,
)

export const listActiveNames = statement<[orgId: number], { id: number; name: string }>(
  'orgs.list_active_workspace_names',
  `select id, name from workspaces where org_id = $1::int and archived_at is null`,
)

export const insertWorkspace = statement<[orgId: number, name: string, createdAt: Date], { id: number }>(
  'orgs.insert_workspace',
  `insert into workspaces (org_id, name, created_at) values ($1::int, $2::text, $3::timestamptz) returning id`,
)

export const renameWorkspace = statement<[orgId: number, id: number, name: string]>(
  'orgs.rename_workspace',
  `update workspaces set name = $3::text where org_id = $1::int and id = $2::int`,
)

/** Archives a workspace. A repeated call keeps the time of the first call. */
export const archiveWorkspace = statement<[orgId: number, id: number, now: Date], { id: number }>(
  'orgs.archive_workspace',
  `update workspaces set archived_at = coalesce(archived_at, $3::timestamptz) where org_id = $1::int and id = $2::int returning id`,
)

/** Makes a workspace active. Returns null when it does not exist. An active workspace does not change. */
export const restoreWorkspace = statement<[orgId: number, id: number], { id: number }>(
  'orgs.restore_workspace',
  `update workspaces set archived_at = null where org_id = $1::int and id = $2::int returning id`,
)

/** Returns those of the given user ids that are active members. */
export const activeAmong = statement<[orgId: number, userIds: readonly number[]], { userId: number }>(
  'orgs.active_among',
  `select user_id as "userId" from org_members where org_id = $1::int and user_id = any($2::int[]) and status = 'active'`,
)

export const dropWorkspaceMembers = statement<[orgId: number, workspaceId: number, keepUserIds: readonly number[]]>(
  'orgs.drop_workspace_members',
  `delete from workspace_members where org_id = $1::int and workspace_id = $2::int and user_id <> all($3::int[])`,
)

export const addWorkspaceMembers = statement<[orgId: number, workspaceId: number, userIds: readonly number[], now: Date]>(
  'orgs.add_workspace_members',
  `insert into workspace_members (org_id, workspace_id, user_id, created_at)
   select $1::int, $2::int, u.id, $4::timestamptz from unnest($3::int[]) as u(id) on conflict (workspace_id, user_id) do nothing`,
)
