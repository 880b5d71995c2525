import { useQuery } from '@tanstack/react-query'
import { apiQuery } from '../api/queries.ts'
import { hasRole, useMe } from './me.tsx'

/** At most this many people are named. */
const namedMax = 3

/**
 * Returns the names of owners of the organisation, so that a person who has less than the role of an act knows whom to ask. Empty for a person who has the
 * role and needs nobody, and until the names are read.
 */
export function useOwners(role: 'admin' | 'owner' = 'admin'): readonly string[] {
  const mayNot = !hasRole(useMe(), role)
  const members = useQuery({ ...apiQuery('listMembers'), enabled: mayNot })
  return (members.data?.members ?? [])
    .filter(({ role }) => role === 'owner')
    .map(({ name, email }) => name ?? email)
    .slice(0, namedMax)
}

/** Returns the sentence that names whom to ask. */
export const askSentence = (people: readonly string[], role: 'admin' | 'owner' = 'admin'): string =>
  people.length === 0
    ? role === 'owner'
      ? 'Ask an owner.'
      : 'Ask an owner or admin.'
    : `Ask ${new Intl.ListFormat('en', { type: 'disjunction' }).format(people)}.`
