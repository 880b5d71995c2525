import { useQueries } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import type { ReplyOf } from '../../../api/call.ts'
import { apiQuery } from '../../../api/queries.ts'
import { Money } from '../../../ui/data/money.tsx'
import { Tree, type TreeNode } from '../../../ui/data/tree.tsx'
import { Panel } from '../../../ui/layout/panel.tsx'
import { text as shared } from '../text.ts'
import type { WholeRun } from '../use-runs.ts'
import { text } from './run-text.ts'

type Part = WholeRun['by_agent'][number]

/** The most agents whose place in the family is read. Further ones are drawn below the first agent. */
const placedMax = 30

/** The agents of a run as a tree: those that made calls, each below the nearest of them that is above it. */
export function FamilyPanel({ run }: { readonly run: WholeRun }) {
  const navigate = useNavigate()
  const parents = useParents(run)
  return (
    <Panel title={text.familyTitle} note={text.familyNote}>
      <Tree
        key={run.by_agent.length}
        label={text.familyTitle}
        nodes={treeOf(run, parents)}
        selected={null}
        opened={run.by_agent.map(idOf)}
        onSelect={id => id !== none && void navigate({ to: '/agents/$id', params: { id } })}
      />
    </Panel>
  )
}

const none = 'none'
const idOf = ({ agent_id: id }: Pick<Part, 'agent_id'>): string => (id === null ? none : String(id))

/** Returns the agents above each agent of a run, the nearest first. */
function useParents({ by_agent: parts, agent_id: top }: WholeRun): ReadonlyMap<string, readonly string[]> {
  const ids = parts.flatMap(({ agent_id: id }) => (id === null || id === top ? [] : [id])).slice(0, placedMax)
  const read = useQueries({ queries: ids.map(id => apiQuery('getAgentConsole', { path: { id } })) })
  return new Map(
    ids.flatMap((id, index): (readonly [string, readonly string[]])[] => {
      const data = read[index]?.data as ReplyOf<'getAgentConsole'> | undefined
      return data === undefined ? [] : [[String(id), data.parents.map(parent => String(parent.id))]]
    }),
  )
}

function treeOf({ by_agent: parts, agent_id: top }: WholeRun, parents: ReadonlyMap<string, readonly string[]>): TreeNode[] {
  const known = new Set(parts.map(idOf))
  const first = top !== null && known.has(String(top)) ? String(top) : null
  const above = (id: string): string | null => (id === first || id === none ? null : (parents.get(id)?.find(parent => known.has(parent)) ?? first))
  const below = (id: string | null): TreeNode[] => parts.filter(part => above(idOf(part)) === id).map(nodeOf)
  const nodeOf = (part: Part): TreeNode => {
    const children = below(idOf(part))
    return {
      id: idOf(part),
      label: part.agent_id === null ? text.noAgent : (part.agent_name ?? `agent ${part.agent_id}`),
      ...(children.length === 0 ? {} : { children }),
      detail: (
        <span className="run-part">
          <Money inr={part.value_inr} isShort />
          <span className="quiet">{shared.callsText(part.calls)}</span>
        </span>
      ),
    }
  }
  return below(null)
}
