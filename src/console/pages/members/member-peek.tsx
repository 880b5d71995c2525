import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { curlOf } from '../../api/call.ts'
import { apiQuery } from '../../api/queries.ts'
import { hasRole, useMe } from '../../app/me.tsx'
import { useOwners } from '../../app/whom-to-ask.ts'
import { BudgetBar } from '../../ui/charts/budget-bar.tsx'
import { Code } from '../../ui/data/code.tsx'
import { Facts } from '../../ui/data/facts.tsx'
import { Tag } from '../../ui/data/status.tsx'
import { count } from '../../ui/format/numbers.ts'
import { Button } from '../../ui/forms/button.tsx'
import { Fold } from '../../ui/forms/choices.tsx'
import { CopyButton } from '../../ui/forms/copy.tsx'
import { Peek } from '../../ui/overlays/peek.tsx'
import { BudgetForm } from '../budgets/form/budget-form.tsx'
import { MemberRoleForm } from './member-role.tsx'
import { text } from './text.ts'
import { type Member, mayRemove, nameOf, useOnlyOwner } from './use-members.ts'

interface MemberPeekProps {
  /** Null when the member is not among those that were read. */
  readonly member: Member | null
  readonly onRemove: (member: Member) => void
  readonly onClose: () => void
}

/** One member beside the list: what they have, what they may do and what they may spend. */
export function MemberPeek({ member, onRemove, onClose }: MemberPeekProps) {
  if (member === null)
    return (
      <Peek title="Member" onClose={onClose}>
        <p className="quiet">{text.notLoaded}</p>
      </Peek>
    )
  return <KnownMember member={member} onRemove={onRemove} onClose={onClose} />
}

function KnownMember({ member, onRemove, onClose }: MemberPeekProps & { readonly member: Member }) {
  const me = useMe()
  const owners = useOwners()
  const isLastOwner = useOnlyOwner() === member.uid
  const isOwn = member.uid === me.user.id
  const spent = member.spend_month_inr
  return (
    <Peek
      title={nameOf(member)}
      subtitle={`${member.name === null ? '' : `${member.email} · `}id ${member.uid}`}
      onClose={onClose}
      actions={
        mayRemove(me, member) &&
        !isLastOwner && (
          <Button look="danger" icon={isOwn ? 'leave' : 'trash'} onClick={() => onRemove(member)}>
            {isOwn ? text.leave : text.remove}
          </Button>
        )
      }
    >
      <div className="stack-3">
        {spent !== null && <BudgetBar capInr={member.monthly_budget_inr} spentInr={spent} />}
        <MemberFacts member={member} />
      </div>
      {isLastOwner && (
        <p className="quiet">
          <strong>{nameOf(member)}</strong> {text.lastOwner}
        </p>
      )}
      {hasRole(me, 'owner') && !isLastOwner && (
        <Fold title={text.editRole} hint={text.editRoleHint}>
          <MemberRoleForm key={`${member.uid} ${member.role} ${member.capabilities}`} member={member} />
        </Fold>
      )}
      {hasRole(me, 'admin') && spent !== null && (
        <Fold title={text.editBudget} hint={text.editBudgetHint}>
          <BudgetForm budget={{ scope: 'member', id: member.uid, name: nameOf(member), capInr: member.monthly_budget_inr, spentInr: spent }} />
        </Fold>
      )}
      {!hasRole(me, 'admin') && <p className="quiet">{text.membersOnly(owners)}</p>}
      {hasRole(me, 'admin') && !hasRole(me, 'owner') && <p className="quiet">{text.rolesByOwners([])}</p>}
      {hasRole(me, 'admin') && (
        <Fold title="Show as curl">
          <Code text={curlOf('updateMember', { path: { id: member.uid }, body: { role: member.role } })} />
          <CopyButton text={String(member.uid)} label="Copy id" />
        </Fold>
      )}
    </Peek>
  )
}

const countedMax = 100

function MemberFacts({ member: { uid, role, capabilities } }: { readonly member: Member }) {
  const owner = String(uid)
  const keys = useQuery(apiQuery('listKeys', { query: { owner, limit: countedMax } }))
  const agents = useQuery(apiQuery('listAgentsConsole', { query: { owner, limit: countedMax } }))
  const number = (found: number | undefined): string => (found === undefined ? '…' : found === countedMax ? `${countedMax} or more` : count(found))
  const facts: readonly (readonly [string, ReactNode])[] = [
    [text.role, <Tag key="role">{text.roles[role]}</Tag>],
    [
      text.capabilities,
      role !== 'member' ? text.everything : capabilities.length === 0 ? text.nothingMore : capabilities.map(one => text.capability[one].label).join(', '),
    ],
    [
      text.keys,
      <Link key="keys" to="/keys" search={{ owner }}>
        {number(keys.data?.keys.length)}
      </Link>,
    ],
    [
      text.agents,
      <Link key="agents" to="/agents" search={{ owner }}>
        {number(agents.data?.agents.length)}
      </Link>,
    ],
  ]
  return <Facts facts={facts} />
}
