import { getRouteApi } from '@tanstack/react-router'
import { useCallback, useMemo, useState } from 'react'
import { usePageCommands } from '../../app/commands/command-list.ts'
import { hasRole, type Me, useMe } from '../../app/me.tsx'
import { useOwners } from '../../app/whom-to-ask.ts'
import { BudgetBar } from '../../ui/charts/budget-bar.tsx'
import { MiddleCut } from '../../ui/data/code.tsx'
import { Status, Tag } from '../../ui/data/status.tsx'
import type { Column } from '../../ui/data/table.tsx'
import { VirtualTable } from '../../ui/data/virtual-table.tsx'
import { Button } from '../../ui/forms/button.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Empty } from '../../ui/layout/empty.tsx'
import { Page } from '../../ui/layout/page.tsx'
import { Loaded, Panel } from '../../ui/layout/panel.tsx'
import { Skeleton } from '../../ui/layout/skeleton.tsx'
import { Menu, MenuItem } from '../../ui/overlays/menu.tsx'
import { Invitations } from './invitations/invitations.tsx'
import { InvitePeople } from './invitations/invite-people.tsx'
import { MemberFilters } from './member-filters.tsx'
import { MemberPeek } from './member-peek.tsx'
import './members.css'
import { RemoveMember } from './remove-member.tsx'
import { text } from './text.ts'
import { type Member, mayRemove, nameOf, useMembers, useOnlyOwner } from './use-members.ts'

const route = getRouteApi('/members')

/** The members and the open invitations. The gateway searches, filters and sorts them. One member can be open beside the list. */
export function MembersPage() {
  const { member: openMember, invite: isInviting, ...filters } = route.useSearch()
  const navigate = route.useNavigate()
  const me = useMe()
  const owners = useOwners()
  const members = useMembers(filters)
  const onlyOwner = useOnlyOwner()
  const [removing, setRemoving] = useState<Member | null>(null)
  const open = useCallback(
    (member: number | null) =>
      void navigate({ search: ({ member: _, invite: __, ...rest }) => (member === null ? rest : { ...rest, member }), resetScroll: false }),
    [navigate],
  )
  const invite = useCallback(() => void navigate({ search: ({ member: _, ...rest }) => ({ ...rest, invite: true }), resetScroll: false }), [navigate])
  const filter = useCallback(
    (changes: object) => void navigate({ search: before => ({ ...before, ...changes }), replace: true, resetScroll: false }),
    [navigate],
  )
  const clear = useCallback(() => void navigate({ search: {}, replace: true, resetScroll: false }), [navigate])
  const mayInvite = hasRole(me, 'admin') && me.org.kind === 'team'
  usePageCommands(
    useMemo(
      () => (mayInvite ? [{ id: 'invite-people', label: text.invite, group: 'Members', icon: 'plus' as const, keys: 'n', run: invite }] : []),
      [mayInvite, invite],
    ),
  )
  const isFiltered = Object.keys(filters).some(name => name !== 'sort')
  return (
    <Page
      title={text.title}
      intro={<Intro me={me} owners={owners} />}
      actions={
        mayInvite && (
          <Button look="primary" icon="plus" onClick={invite}>
            {text.invite}
          </Button>
        )
      }
    >
      <MemberFilters value={filters} onChange={filter} />
      <Loaded
        query={members}
        skeleton={
          <Panel isFlush>
            <Skeleton lines={6} height={28} />
          </Panel>
        }
      >
        {({ members: rows, invitations }) => (
          <>
            {rows.length === 0 && invitations.length === 0 && isFiltered && !members.hasNextPage && (
              <Panel>
                <Empty icon="search" title={text.noneTitle} action={<Button onClick={clear}>{text.clear}</Button>}>
                  {text.none}
                </Empty>
              </Panel>
            )}
            {(rows.length > 0 || members.hasNextPage) && (
              <Panel isFlush>
                <VirtualTable
                  label={text.membersTable}
                  columns={columnsFor({ me, rows, onlyOwner, onRemove: setRemoving, onOpen: open })}
                  rows={rows}
                  rowKey={({ uid }) => uid}
                  onOpen={({ uid }) => open(uid)}
                  isOpen={({ uid }) => uid === openMember}
                  onMore={members.hasNextPage ? () => void members.fetchNextPage() : null}
                  isLoadingMore={members.isFetchingNextPage}
                />
                {rows.length === 1 && invitations.length === 0 && !isFiltered && mayInvite && (
                  <Empty
                    icon="people"
                    title={text.aloneTitle}
                    action={
                      <Button look="primary" icon="plus" onClick={invite}>
                        {text.invite}
                      </Button>
                    }
                  >
                    {text.alone}
                  </Empty>
                )}
              </Panel>
            )}
            {invitations.length > 0 && <Invitations rows={invitations} />}
          </>
        )}
      </Loaded>
      {openMember !== undefined && members.data && (
        <MemberPeek
          key={openMember}
          member={members.data.members.find(({ uid }) => uid === openMember) ?? null}
          onRemove={setRemoving}
          onClose={() => open(null)}
        />
      )}
      {isInviting && mayInvite && <InvitePeople onClose={() => open(null)} />}
      {removing && <RemoveMember member={removing} onClose={() => setRemoving(null)} onGone={() => open(null)} />}
    </Page>
  )
}

function Intro({ me, owners }: { readonly me: Me; readonly owners: readonly string[] }) {
  if (!hasRole(me, 'admin')) return `${text.intro} ${text.membersOnly(owners)}`
  return me.org.kind === 'personal' ? text.personal : text.intro
}

interface ColumnsProps {
  readonly me: Me
  readonly rows: readonly Member[]
  readonly onlyOwner: number | null
  readonly onRemove: (member: Member) => void
  readonly onOpen: (uid: number) => void
}

function columnsFor({ me, rows, onlyOwner, onRemove, onOpen }: ColumnsProps): Column<Member>[] {
  // A person who may not see what the others spend gets a column for nobody.
  const hasSpend = rows.some(({ uid, spend_month_inr: spent }) => uid !== me.user.id && spent !== null) || rows.every(({ uid }) => uid === me.user.id)
  return [
    {
      key: 'name',
      head: 'Person',
      isName: true,
      cell: member => (
        <span className="cell-stack">
          <span>
            <MiddleCut text={nameOf(member)} max={36} />
            {member.uid === me.user.id && <span className="member-you">{text.you}</span>}
          </span>
          {member.name !== null && <span className="quiet">{member.email}</span>}
        </span>
      ),
    },
    { key: 'role', head: text.role, cell: ({ role }) => <Tag>{text.roles[role]}</Tag> },
    {
      key: 'state',
      head: text.state,
      isOnCards: false,
      cell: () => (
        <Status tone="good" title={text.activeMeans}>
          {text.active}
        </Status>
      ),
    },
    ...(hasSpend
      ? [
          {
            key: 'budget',
            head: 'This month',
            width: '13rem',
            cell: ({ monthly_budget_inr: cap, spend_month_inr: spent }: Member) => (spent === null ? null : <BudgetBar capInr={cap} spentInr={spent} />),
          },
        ]
      : []),
    {
      key: 'acts',
      head: '',
      align: 'end',
      cell: member => {
        const isRemovable = mayRemove(me, member) && member.uid !== onlyOwner
        if (!isRemovable && !hasRole(me, 'admin')) return null
        return (
          <Menu label={text.acts(nameOf(member))} trigger={<Icon name="more" />}>
            {hasRole(me, 'admin') && (
              <MenuItem icon="edit" onClick={() => onOpen(member.uid)}>
                {hasRole(me, 'owner') && member.uid !== onlyOwner ? text.edit : text.editBudget}
              </MenuItem>
            )}
            {isRemovable && (
              <MenuItem icon={member.uid === me.user.id ? 'leave' : 'trash'} isDanger onClick={() => onRemove(member)}>
                {member.uid === me.user.id ? text.leave : text.remove}…
              </MenuItem>
            )}
          </Menu>
        )
      },
    },
  ]
}
