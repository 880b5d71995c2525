import { useQueries } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { ReplyOf } from '../../../api/call.ts'
import { apiQuery } from '../../../api/queries.ts'
import { BudgetBar } from '../../../ui/charts/budget-bar.tsx'
import { Status, Tag } from '../../../ui/data/status.tsx'
import { Tree, type TreeNode } from '../../../ui/data/tree.tsx'
import { Button } from '../../../ui/forms/button.tsx'
import { Panel } from '../../../ui/layout/panel.tsx'
import type { TabProps } from '../agent-tabs.ts'
import { CreateAgent } from '../create-agent.tsx'
import { text as shared, statuses } from '../text.ts'
import type { AgentFamily, FamilyMember } from '../use-agents.ts'
import { text } from './text.ts'

/** Generations below the first agent of a family. */
const depthMax = 3
const childrenMax = 100

/** The agents above and below as a tree, each with its budget. */
export function FamilyTab({ agent, isMine }: TabProps) {
  const navigate = useNavigate()
  const [isNew, setNew] = useState(false)
  const [opened, setOpened] = useState<readonly string[]>([])
  const below = useChildren(opened)
  const isDeepest = agent.depth >= depthMax
  const isAlone = agent.parents.length === 0 && agent.children.length === 0
  const open = (id: string | number): void => void navigate({ to: '/agents/$id', params: { id: String(id) }, search: { tab: 'family' } })
  const shown = agent.children.length
  return (
    <Panel
      title={text.familyTitle}
      note={text.familyNote}
      actions={
        isMine &&
        !isDeepest && (
          <Button size="sm" icon="plus" onClick={() => setNew(true)}>
            {shared.createChild}
          </Button>
        )
      }
    >
      <div className="stack-3">
        {isAlone && <p className="quiet">{text.noFamily}</p>}
        {isDeepest && <p className="quiet">{text.deepest}</p>}
        <Tree
          label={text.familyTitle}
          nodes={treeOf(agent, below)}
          selected={String(agent.id)}
          onSelect={id => id !== String(agent.id) && open(id)}
          opened={[...agent.parents.map(({ id }) => String(id)), String(agent.id)]}
          onExpand={id => setOpened(before => (before.includes(id) ? before : [...before, id]))}
        />
        {agent.monthly_budget_inr !== null && shown === agent.active_children && shown > 0 && (
          <p className="quiet">{text.allotted(sumOf(agent.children), agent.monthly_budget_inr)}</p>
        )}
        {shown < agent.active_children && (
          <p className="quiet">
            {text.moreChildren(shown, agent.active_children)}{' '}
            <Link to="/agents" search={{ parent: String(agent.id) }}>
              {text.allChildren}
            </Link>
          </p>
        )}
      </div>
      {isNew && (
        <CreateAgent
          parent={agent}
          onClose={() => setNew(false)}
          onMade={({ id }) => {
            setNew(false)
            open(id)
          }}
        />
      )}
    </Panel>
  )
}

const sumOf = (children: readonly FamilyMember[]): number => children.reduce((sum, { monthly_budget_inr: inr }) => sum + (inr ?? 0), 0)

type Below = ReadonlyMap<string, readonly FamilyMember[]>

/** Reads the children of each agent whose line a person opened. */
function useChildren(ids: readonly string[]): Below {
  const read = useQueries({ queries: ids.map(id => apiQuery('listAgentsConsole', { query: { parent: id, limit: childrenMax } })) })
  return new Map(
    ids.flatMap((id, index): (readonly [string, readonly FamilyMember[]])[] => {
      const data = read[index]?.data as ReplyOf<'listAgentsConsole'> | undefined
      return data === undefined ? [] : [[id, data.agents.filter(({ status }) => status !== 'revoked')]]
    }),
  )
}

function treeOf(agent: AgentFamily, below: Below): TreeNode[] {
  const self = lineOf(agent, agent.children.length === 0 ? undefined : agent.children.map(child => childOf(child, agent.depth + 1, below)), true)
  return [agent.parents.reduce((node, parent) => lineOf(parent, [node]), self)]
}

function childOf(member: FamilyMember, depth: number, below: Below): TreeNode {
  if (depth >= depthMax) return lineOf(member, undefined)
  const known = below.get(String(member.id))
  return lineOf(member, known === undefined ? null : known.length === 0 ? undefined : known.map(child => childOf(child, depth + 1, below)))
}

function lineOf(member: FamilyMember, children: TreeNode['children'], isSelf = false): TreeNode {
  const { tone, icon, name } = statuses[member.status]
  return {
    id: String(member.id),
    label: member.name,
    ...(children === undefined ? {} : { children }),
    detail: (
      <span className="family-detail">
        {isSelf && <Tag>{text.thisAgent}</Tag>}
        {member.status !== 'active' && (
          <Status tone={tone} icon={icon}>
            {name}
          </Status>
        )}
        <span className="family-budget">
          {member.monthly_budget_inr !== null && (
            <BudgetBar capInr={member.monthly_budget_inr} spentInr={member.spend_month_inr} heldInr={member.held_inr} hasFigures={false} />
          )}
          <span className="tabular">{shared.spentOf(member.spend_month_inr, member.monthly_budget_inr)}</span>
        </span>
      </span>
    ),
  }
}
