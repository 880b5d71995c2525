import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { api, type ReplyOf } from '../../../../api/call.ts'
import type { ComboOption } from '../../../../ui/forms/combobox.tsx'
import { text } from './text.ts'

export type JudgedTool = ReplyOf<'previewAgentTools'>['tools'][number]

/** What a preview shows: the tools that the patterns match, or all approved tools. */
export type Shown = 'matched' | 'all'

const pageSize = 100
const foundMax = 20
/** The pattern for all tools of a server. */
const allOf = (slug: string): string => `${slug}__*`

/** Returns what a rule would let the agent call, in the pages that were read so far. The gateway judges; nothing changes. */
export function useToolPreview(agentId: number, patterns: readonly string[], shown: Shown, q: string) {
  const body = { allowed_tools: [...patterns], show: shown, ...(q === '' ? {} : { q }) }
  return useInfiniteQuery({
    queryKey: ['previewAgentTools', agentId, body],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) =>
      api('previewAgentTools', {
        path: { id: agentId },
        body: { ...body, limit: pageSize, ...(pageParam === undefined ? {} : { cursor: pageParam }) },
        signal,
      }),
    getNextPageParam: page => page.next_cursor ?? undefined,
    placeholderData: keepPreviousData,
    select: data => {
      const [{ allowed = 0, total = 0, patterns: matches = [] } = {}] = data.pages
      return { tools: data.pages.flatMap(({ tools }) => tools), allowed, total, matches }
    },
  })
}

/** Finds patterns by a part of a name: all tools of a server first, then single tools. */
export async function findPatterns(agentId: number, typed: string, signal: AbortSignal): Promise<readonly ComboOption[]> {
  const q = typed.trim().toLowerCase()
  const [{ servers }, { tools }] = await Promise.all([
    api('listToolServers', { signal }),
    api('previewAgentTools', { path: { id: agentId }, body: { show: 'all', limit: foundMax, ...(q === '' ? {} : { q }) }, signal }),
  ])
  return [
    ...servers
      .filter(({ slug, name }) => `${slug} ${name}`.toLowerCase().includes(q))
      .map(({ slug, name, tools: counts }) => ({ value: allOf(slug), label: allOf(slug), hint: text.allOf(name, counts.approved) })),
    ...tools.map(({ name, title }) => ({ value: name, label: name, ...(title === null ? {} : { hint: title }) })),
  ]
}
