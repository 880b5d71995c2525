import { getRouteApi } from '@tanstack/react-router'
import { useCallback, useMemo, useState } from 'react'
import { usePageCommands } from '../../app/commands/command-list.ts'
import { hasRole, useMe } from '../../app/me.tsx'
import { useOwners } from '../../app/whom-to-ask.ts'
import { BudgetBar } from '../../ui/charts/budget-bar.tsx'
import { MiddleCut } from '../../ui/data/code.tsx'
import { Status } from '../../ui/data/status.tsx'
import type { Column } from '../../ui/data/table.tsx'
import { VirtualTable } from '../../ui/data/virtual-table.tsx'
import { Button } from '../../ui/forms/button.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Empty } from '../../ui/layout/empty.tsx'
import { Page } from '../../ui/layout/page.tsx'
import { Loaded, Panel } from '../../ui/layout/panel.tsx'
import { Skeleton } from '../../ui/layout/skeleton.tsx'
import { Menu, MenuItem } from '../../ui/overlays/menu.tsx'
import { CreateWorkspace } from './create-workspace.tsx'
import { text } from './text.ts'
import { useWorkspaces, type Workspace } from './use-workspaces.ts'
import { ArchiveOrRestore } from './workspace-dialogs.tsx'
import { WorkspaceFilters } from './workspace-filters.tsx'
import { WorkspacePeek } from './workspace-peek.tsx'
import './workspaces.css'

const route = getRouteApi('/workspaces')

/** The workspaces of the organisation. The gateway searches, filters and sorts them. One of them can be open beside the list. */
export function WorkspacesPage() {
  const { workspace: openId, new: isNew, ...filters } = route.useSearch()
  const navigate = route.useNavigate()
  const isAdmin = hasRole(useMe(), 'admin')
  const owners = useOwners()
  const workspaces = useWorkspaces(filters)
  const [archiving, setArchiving] = useState<Workspace | null>(null)
  const open = useCallback(
    (workspace: number | null) =>
      void navigate({ search: ({ workspace: _, new: __, ...rest }) => (workspace === null ? rest : { ...rest, workspace }), resetScroll: false }),
    [navigate],
  )
  const create = useCallback(() => void navigate({ search: ({ workspace: _, ...rest }) => ({ ...rest, new: true }), resetScroll: false }), [navigate])
  const filter = useCallback(
    (changes: object) => void navigate({ search: before => ({ ...before, ...changes }), replace: true, resetScroll: false }),
    [navigate],
  )
  const clear = useCallback(() => void navigate({ search: {}, replace: true, resetScroll: false }), [navigate])
  usePageCommands(
    useMemo(
      () => (isAdmin ? [{ id: 'new-workspace', label: text.create, group: 'Workspaces', icon: 'plus' as const, keys: 'n', run: create }] : []),
      [isAdmin, create],
    ),
  )
  const isFiltered = Object.keys(filters).some(name => name !== 'sort')
  const isUnused = !isFiltered && workspaces.data?.length === 0 && !workspaces.hasNextPage
  const createButton = isAdmin && (
    <Button look="primary" icon="plus" onClick={create}>
      {text.create}
    </Button>
  )
  return (
    <Page title={text.title} intro={isAdmin ? text.intro : `${text.intro} ${text.membersOnly(owners)}`} actions={createButton}>
      {!isUnused && <WorkspaceFilters value={filters} onChange={filter} />}
      <Panel isFlush>
        <Loaded query={workspaces} skeleton={<Skeleton lines={6} height={28} />}>
          {rows =>
            rows.length > 0 || workspaces.hasNextPage ? (
              <VirtualTable
                label={text.title}
                columns={columnsFor(isAdmin, open, setArchiving)}
                rows={rows}
                rowKey={({ id }) => id}
                onOpen={({ id }) => open(id)}
                isOpen={({ id }) => id === openId}
                onMore={workspaces.hasNextPage ? () => void workspaces.fetchNextPage() : null}
                isLoadingMore={workspaces.isFetchingNextPage}
              />
            ) : isFiltered ? (
              <Empty icon="search" title={text.noneTitle} action={<Button onClick={clear}>{text.clear}</Button>}>
                {text.none}
              </Empty>
            ) : (
              <Empty icon="folder" title={text.emptyTitle} action={createButton}>
                {text.empty}
              </Empty>
            )
          }
        </Loaded>
      </Panel>
      {openId !== undefined && workspaces.data && (
        <WorkspacePeek key={openId} workspace={workspaces.data.find(({ id }) => id === openId) ?? null} onArchive={setArchiving} onClose={() => open(null)} />
      )}
      {isNew && isAdmin && <CreateWorkspace onClose={() => open(null)} onMade={({ id }) => open(id)} />}
      {archiving && <ArchiveOrRestore workspace={archiving} onClose={() => setArchiving(null)} />}
    </Page>
  )
}

function columnsFor(isAdmin: boolean, onOpen: (id: number) => void, onArchive: (workspace: Workspace) => void): Column<Workspace>[] {
  return [
    { key: 'name', head: text.name, isName: true, cell: ({ name }) => <MiddleCut text={name} max={40} /> },
    {
      key: 'state',
      head: text.state,
      cell: ({ archived }) => (
        <Status tone={archived ? 'quiet' : 'good'} {...(archived ? { icon: 'folder' as const } : {})} title={text.means[archived ? 'archived' : 'active']}>
          {text.states[archived ? 'archived' : 'active']}
        </Status>
      ),
    },
    {
      key: 'budget',
      head: 'This month',
      width: '13rem',
      cell: ({ monthly_budget_inr: cap, spend_month_inr: spent }) => <BudgetBar capInr={cap} spentInr={spent} />,
    },
    { key: 'team', head: text.team, isOnCards: false, cell: ({ member_uids: team }) => text.teamSize(team.length) },
    { key: 'keys', head: text.keys, align: 'end', isOnCards: false, cell: ({ keys }) => <span className="tabular">{text.keyCount(keys)}</span> },
    ...(isAdmin
      ? [
          {
            key: 'acts',
            head: '',
            align: 'end' as const,
            cell: (workspace: Workspace) => (
              <Menu label={text.acts(workspace.name)} trigger={<Icon name="more" />}>
                <MenuItem icon="edit" onClick={() => onOpen(workspace.id)}>
                  {text.edit}
                </MenuItem>
                <MenuItem icon={workspace.archived ? 'rotate' : 'folder'} onClick={() => onArchive(workspace)}>
                  {workspace.archived ? text.restore : text.archive}…
                </MenuItem>
              </Menu>
            ),
          },
        ]
      : []),
  ]
}
