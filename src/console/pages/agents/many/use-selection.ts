import { useCallback, useMemo, useState } from 'react'
import { useMe } from '../../../app/me.tsx'
import type { Marks } from '../../../ui/data/table.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import { text } from '../text.ts'
import { type Agent, mayAct } from '../use-agents.ts'

/** Most agents that one act changes. */
export const manyMax = 100

interface Selection {
  /** The selected agents as the list shows them now, in its order. */
  readonly selected: readonly Agent[]
  readonly marks: Marks<Agent>
  clear(): void
}

/** The agents that a person has selected. An agent that leaves the list, or that nobody can act on any more, leaves the selection. */
export function useSelection(rows: readonly Agent[]): Selection {
  const me = useMe()
  const [ids, setIds] = useState<ReadonlySet<number>>(new Set())
  const mayMark = useCallback((agent: Agent): boolean => agent.status !== 'revoked' && mayAct(me, agent), [me])
  const selected = useMemo(() => rows.filter(agent => ids.has(agent.id) && mayMark(agent)), [rows, ids, mayMark])
  const clear = useCallback(() => setIds(new Set()), [])
  const put = (agents: readonly Agent[]): void => {
    if (agents.length > manyMax) toast(text.many.full(manyMax), 'bad')
    setIds(new Set(agents.slice(0, manyMax).map(({ id }) => id)))
  }
  return {
    selected,
    clear,
    marks: {
      mayMark,
      isMarked: ({ id }) => ids.has(id),
      onMark: (agent, isMarked) => put(isMarked ? [...selected, agent] : selected.filter(({ id }) => id !== agent.id)),
      label: ({ name }) => text.many.select(name),
      allLabel: text.many.selectAll,
      onMarkAll: isMarked => put(isMarked ? rows.filter(mayMark) : []),
    },
  }
}
