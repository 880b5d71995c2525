import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { api, type ReplyOf } from '../../api/call.ts'
import { invalidate } from '../../api/queries.ts'
import type { ComboOption } from '../../ui/forms/combobox.tsx'
import { type WorkspaceFilterValues, workspacesQuery } from './search.ts'

export type Workspace = ReplyOf<'listWorkspaces'>['workspaces'][number]

/** Returns the workspaces that the filters choose, in the pages that were read so far. */
export function useWorkspaces(filters: WorkspaceFilterValues) {
  return useInfiniteQuery({
    ...workspacesQuery(filters),
    placeholderData: keepPreviousData,
    select: data => data.pages.flatMap(({ workspaces }) => workspaces),
  })
}

/** Reads again what pages show of workspaces. */
export const workspacesChanged = (): Promise<void> => invalidate('listWorkspaces', 'orgBudgets')

const foundMax = 20

/** Finds members by a part of their name or address. The gateway searches. */
export async function findTeam(words: string, signal: AbortSignal): Promise<readonly ComboOption[]> {
  const q = words.trim()
  const { members } = await api('listMembers', { query: { limit: foundMax, state: 'active', ...(q === '' ? {} : { q }) }, signal })
  return members.map(({ uid, name, email }) => ({ value: String(uid), label: name ?? email, ...(name === null ? {} : { hint: email }) }))
}
