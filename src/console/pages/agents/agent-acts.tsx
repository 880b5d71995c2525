import { useNavigate } from '@tanstack/react-router'
import { Icon } from '../../ui/icon.tsx'
import { Menu, MenuItem, MenuLine } from '../../ui/overlays/menu.tsx'
import { text } from './text.ts'
import type { Agent } from './use-agents.ts'

/** What a person can do with an agent from the list. */
export type AgentAct = 'pause' | 'resume' | 'end'

/** Returns the acts that the state of an agent allows. An agent that has ended has none. */
export function actsOf({ status }: Pick<Agent, 'status'>): readonly AgentAct[] {
  if (status === 'revoked') return []
  return [status === 'paused' ? 'resume' : 'pause', 'end']
}

/** The menu of a row. It is drawn for those who may act only. */
export function AgentActs({ agent, onAct }: { readonly agent: Agent; readonly onAct: (act: AgentAct) => void }) {
  const navigate = useNavigate()
  const acts = actsOf(agent)
  if (acts.length === 0) return null
  const open = (tab: 'tokens' | 'rules'): void => void navigate({ to: '/agents/$id', params: { id: String(agent.id) }, search: { tab } })
  return (
    <Menu label={text.acts(agent.name)} trigger={<Icon name="more" />}>
      <MenuItem icon="key" onClick={() => open('tokens')}>
        Make a token
      </MenuItem>
      <MenuItem icon="edit" onClick={() => open('rules')}>
        Change rules
      </MenuItem>
      <MenuLine />
      {acts.includes('pause') && (
        <MenuItem icon="pause" onClick={() => onAct('pause')}>
          {text.pause}
        </MenuItem>
      )}
      {acts.includes('resume') && (
        <MenuItem icon="play" onClick={() => onAct('resume')}>
          {text.resume}
        </MenuItem>
      )}
      <MenuItem icon="trash" isDanger onClick={() => onAct('end')}>
        {text.end}…
      </MenuItem>
    </Menu>
  )
}
