import { useQuery } from '@tanstack/react-query'
import { apiQuery } from '../api/queries.ts'
import { hasRole, useMe } from './me.tsx'

/** At most this many people are named. */
const namedMax = 3

/**
 * Returns the names of owners of the organisation, so that a member knows whom to ask. Empty for owners and admins, who need nobody, and until the names are
 * read.
 */
export function useOwners(): readonly string[] {
  const isMember = !hasRole(useMe(), 'admin')
  const members = useQuery({ ...apiQuery('listMembers'), enabled: isMember })
  return (members.data?.members ?? [])
    .filter(({ role }) => role === 'owner')
    .map(({ name, email }) => name ?? email)
    .slice(0, namedMax)
}

/** Returns the sentence that names whom to ask. */
export const askSentence = (people: readonly string[]): string =>
  people.length === 0 ? 'Ask an owner or admin.' : `Ask ${new Intl.ListFormat('en', { type: 'disjunction' }).format(people)}.`
