/** Workspaces. A workspace has a name, a team, and a monthly budget for the keys that belong to it. */

import type { Clock } from '../../../platform/clock.ts'
import { type Db, isUniqueViolation, type Tx } from '../../../platform/db/db.ts'
import type { ControlLog, NewsItem } from '../../../platform/db/db-control-log.ts'
import { fail } from '../../../platform/errors.ts'
import type { Flushable } from '../../../platform/flushable.ts'
import { cleanName } from '../../../platform/values/clean-name.ts'
import { capOfInr } from '../../limits/budgets/budget-amount.ts'
import { type Budgets, capChanged } from '../../limits/budgets/budgets.ts'
import { lockOrg } from '../members/member-queries.ts'
import { pageOfWorkspaces, type WorkspaceFilter } from './workspace-list.ts'
import {
  activeAmong,
  addWorkspaceMembers,
  archiveWorkspace,
  dropWorkspaceMembers,
  findWorkspace,
  insertWorkspace,
  listActiveNames,
  renameWorkspace,
  restoreWorkspace,
  type WorkspaceRow,
} from './workspace-queries.ts'

export interface WorkspacesDeps {
  readonly db: Db
  readonly clock: Clock
  readonly controlLog: ControlLog
  readonly budgets: Pick<Budgets, 'setIn' | 'list'>
  /** Writes the charges that this process has counted to the database, so that the reported spend includes them. */
  readonly journal: Flushable
  /** Returns how many keys belong to each workspace, by id. A workspace without keys is left out. */
  countKeys(orgId: number, workspaceIds: readonly number[]): Promise<ReadonlyMap<number, number>>
}

/** The requested values of a workspace. An absent field does not change. */
export interface WorkspaceParams {
  readonly name?: string | undefined
  /** Rupees a month. Null removes the budget. */
  readonly monthlyBudgetInr?: number | null | undefined
  /** User ids of the whole team. */
  readonly memberUids?: readonly number[] | undefined
}

/** A workspace and its spend in the present IST month. */
export interface Workspace extends WorkspaceRow {
  /** Budget in micro-rupees. Null means no budget. */
  readonly capUinr: bigint | null
  readonly spentUinr: bigint
  /** Number of keys that are not revoked. */
  readonly keyCount: number
}

/** The `kind` of the control-log item for a workspace whose name, team or state changed. Its `ref` is the workspace's id. Caches of teams drop the entry. */
export const workspaceChanged = 'workspace_changed'

const activeMax = 200
/** Maximum number of workspaces of one page. */
export const workspacesPageMax = 1_000

const noWorkspace = () => fail('not_found', { message: 'There is no such workspace. GET /me/workspaces lists them.' })

export class Workspaces {
  readonly #deps: WorkspacesDeps

  constructor(deps: WorkspacesDeps) {
    this.#deps = deps
  }

  /** Returns a page of the workspaces that a filter chooses, and the cursor of the next page. Throws `bad_request` for an invalid cursor. */
  async list(orgId: number, filter: WorkspaceFilter): Promise<{ workspaces: Workspace[]; nextCursor: string | null }> {
    await this.#deps.journal.flushNow()
    const { workspaces, nextCursor } = await pageOfWorkspaces(this.#deps.db, orgId, filter)
    return { workspaces: await this.#withSpend(orgId, workspaces), nextCursor }
  }

  /** Makes a workspace. Throws `bad_name`, `duplicate_workspace`, `cap`, `not_found` (for a user who is not a member) and `bad_request`. */
  async create(orgId: number, params: WorkspaceParams & { readonly name: string }): Promise<Workspace> {
    const name = cleanName(params.name)
    const now = new Date(this.#deps.clock.nowMs())
    const id = await this.#write(async tx => {
      await tx.one(lockOrg, orgId)
      const active = await this.#checkName(tx, orgId, name, null)
      checkRoom(active)
      const made = await tx.one(insertWorkspace, orgId, name, now)
      return { value: made.id, news: await this.#apply(tx, orgId, made.id, { ...params, name: undefined }) }
    })
    return this.get(orgId, id)
  }

  /**
   * Changes a workspace. An archived workspace can change too, because its keys still count against its budget. A new budget applies in this process
   * from the commit, and in other processes within a second. Throws `not_found` (also for a user who is not a member), `bad_name`,
   * `duplicate_workspace`, `bad_request`.
   */
  async change(orgId: number, id: number, params: WorkspaceParams): Promise<Workspace> {
    await this.#write(async tx => {
      await tx.one(lockOrg, orgId)
      const before = await tx.maybe(findWorkspace, orgId, id)
      if (before === null) throw noWorkspace()
      if (params.name !== undefined && !before.isArchived) await this.#checkName(tx, orgId, cleanName(params.name), id)
      return { value: undefined, news: await this.#apply(tx, orgId, id, params) }
    })
    return this.get(orgId, id)
  }

  /**
   * Archives a workspace. Its name becomes free, and no new key can join it. Keys, usage and budget stay. A repeated call is no error. Throws
   * `not_found`.
   */
  async archive(orgId: number, id: number): Promise<Workspace> {
    await this.#write(async tx => {
      if ((await tx.maybe(archiveWorkspace, orgId, id, new Date(this.#deps.clock.nowMs()))) === null) throw noWorkspace()
      return { value: undefined, news: [{ kind: workspaceChanged, ref: String(id) }] }
    })
    return this.get(orgId, id)
  }

  /**
   * Makes an archived workspace active again, with its keys, team, usage and budget. The caller gives another name when the old one is
   * taken. Restoring an active workspace is no error. Throws `not_found`, `duplicate_workspace`, `bad_name` and `cap`.
   */
  async restore(orgId: number, id: number, newName: string | undefined): Promise<Workspace> {
    await this.#write(async tx => {
      await tx.one(lockOrg, orgId)
      const before = await tx.maybe(findWorkspace, orgId, id)
      if (before === null) throw noWorkspace()
      const name = newName === undefined ? before.name : cleanName(newName)
      const active = await this.#checkName(tx, orgId, name, id)
      if (before.isArchived) checkRoom(active)
      await tx.exec(renameWorkspace, orgId, id, name)
      await tx.one(restoreWorkspace, orgId, id)
      return { value: undefined, news: [{ kind: workspaceChanged, ref: String(id) }] }
    })
    return this.get(orgId, id)
  }

  /** Returns one workspace. Throws `not_found`. */
  async get(orgId: number, id: number): Promise<Workspace> {
    const row = await this.#deps.db.maybe(findWorkspace, orgId, id)
    const [workspace] = row === null ? [] : await this.#withSpend(orgId, [row])
    if (workspace === undefined) throw noWorkspace()
    return workspace
  }

  async #apply(tx: Tx, orgId: number, id: number, params: WorkspaceParams): Promise<NewsItem[]> {
    const news: NewsItem[] = [{ kind: workspaceChanged, ref: String(id) }]
    if (params.name !== undefined) await tx.exec(renameWorkspace, orgId, id, cleanName(params.name))
    if (params.memberUids !== undefined) await this.#setTeam(tx, orgId, id, [...new Set(params.memberUids)])
    if (params.monthlyBudgetInr !== undefined) {
      await this.#deps.budgets.setIn(
        tx,
        orgId,
        'workspace',
        String(id),
        capOfInr(params.monthlyBudgetInr, { toStop: 'disable the keys that are bound to the workspace' }),
      )
      news.push({ kind: capChanged, ref: `${orgId}:workspace:${id}` })
    }
    return news
  }

  /**
   * Returns the number of active workspaces. Throws `duplicate_workspace` when one of them has the name. This code compares the names while it holds
   * the lock, because lower case in the database depends on its locale. The unique index is only a second protection.
   */
  async #checkName(tx: Tx, orgId: number, name: string, exceptId: number | null): Promise<number> {
    const active = await tx.many(listActiveNames, orgId)
    if (active.some(each => each.id !== exceptId && folded(each.name) === folded(name))) throw fail('duplicate_workspace')
    return active.length
  }

  async #setTeam(tx: Tx, orgId: number, id: number, userIds: readonly number[]): Promise<void> {
    const known = new Set((await tx.many(activeAmong, orgId, userIds)).map(row => row.userId))
    const stranger = userIds.find(userId => !known.has(userId))
    if (stranger !== undefined) throw fail('not_found', { message: `member_uids: there is no member with the id ${stranger}. GET /me/members lists them.` })
    await tx.exec(dropWorkspaceMembers, orgId, id, userIds)
    await tx.exec(addWorkspaceMembers, orgId, id, userIds, new Date(this.#deps.clock.nowMs()))
  }

  async #withSpend(orgId: number, rows: readonly WorkspaceRow[]): Promise<Workspace[]> {
    const refs = rows.map(row => ({ scope: 'workspace' as const, scopeId: String(row.id) }))
    const [statuses, keys] = await Promise.all([
      this.#deps.budgets.list(orgId, refs),
      this.#deps.countKeys(
        orgId,
        rows.map(row => row.id),
      ),
    ])
    const found = new Map(statuses.map(status => [status.id, status]))
    return rows.map(row => {
      const status = found.get(String(row.id))
      return { ...row, capUinr: status?.capUinr ?? null, spentUinr: status?.spentUinr ?? 0n, keyCount: keys.get(row.id) ?? 0 }
    })
  }

  async #write<T>(fn: (tx: Tx) => Promise<{ value: T; news: readonly NewsItem[] }>): Promise<T> {
    try {
      return await this.#deps.controlLog.change(fn)
    } catch (error) {
      if (isUniqueViolation(error, 'workspaces_active_name')) throw fail('duplicate_workspace')
      throw error
    }
  }
}

function checkRoom(active: number): void {
  if (active >= activeMax) throw fail('cap', { message: `An organisation has at most ${activeMax} active workspaces. Archive one first.` })
}

const folded = (name: string): string => name.normalize('NFC').toLowerCase()
