import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query'
import type { ReplyOf } from '../../api/call.ts'
import { apiQuery, invalidate } from '../../api/queries.ts'
import { hasRole, type Me } from '../../app/me.tsx'
import { type MemberFilterValues, membersQuery } from './search.ts'

type Reply = ReplyOf<'listMembers'>
export type Member = Reply['members'][number]
export type Invitation = Reply['pending'][number]

/** Returns the members and the open invitations that the filters choose, in the pages that were read so far. */
export function useMembers(filters: MemberFilterValues) {
  return useInfiniteQuery({
    ...membersQuery(filters),
    placeholderData: keepPreviousData,
    select: ({ pages }) => ({ members: pages.flatMap(({ members }) => members), invitations: pages.flatMap(({ pending }) => pending) }),
  })
}

/** Reads again what pages show of members. */
export const membersChanged = (): Promise<void> => invalidate('listMembers', 'orgBudgets', 'listWorkspaces')

/** Returns the user id of the owner when there is only one, who can neither leave nor become less. Null until the owners are read. */
export function useOnlyOwner(): number | null {
  const owners = useQuery(apiQuery('listMembers', { query: { role: 'owner', state: 'active', limit: 2 } }))
  const [first, second] = owners.data?.members ?? []
  return second === undefined ? (first?.uid ?? null) : null
}

/** Returns the name of a member, or the address of one without a name. */
export const nameOf = ({ name, email }: Pick<Member, 'name' | 'email'>): string => name ?? email

/** Returns whether the gateway lets the person remove a member: oneself, an owner everybody, an admin everybody but owners. */
export const mayRemove = (me: Me, { uid, role }: Pick<Member, 'uid' | 'role'>): boolean =>
  uid === me.user.id || hasRole(me, 'owner') || (hasRole(me, 'admin') && role !== 'owner')

/** Returns whether the person may hand an invitation over and mail it again. Only an owner invites an owner. */
export const mayInviteAs = (me: Me, role: Member['role']): boolean => hasRole(me, role === 'owner' ? 'owner' : 'admin')
