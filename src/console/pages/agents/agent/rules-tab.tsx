import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { api, type CallOptions } from '../../../api/call.ts'
import { apiQuery } from '../../../api/queries.ts'
import { hasRole, useMe } from '../../../app/me.tsx'
import { Button } from '../../../ui/forms/button.tsx'
import { SelectField } from '../../../ui/forms/field.tsx'
import { Icon } from '../../../ui/icon.tsx'
import { InlineError } from '../../../ui/layout/error-panel.tsx'
import { Panel } from '../../../ui/layout/panel.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import type { TabProps } from '../agent-tabs.ts'
import { changesOf, isReady, RuleFields, rulesOf } from '../rule-fields.tsx'
import { type AgentFamily, agentsChanged } from '../use-agents.ts'
import { rulesInWords, text } from './text.ts'

const membersMax = 200

/** The rules: a form for those who may change them, and sentences for the others. */
export function RulesTab({ agent, isMine }: TabProps) {
  return (
    <Panel title={text.rulesTitle}>
      <div className="agent-rules">
        {isMine ? (
          <RulesForm key={agent.id} agent={agent} />
        ) : (
          <ul className="rule-words">
            {rulesInWords(agent).map(words => (
              <li key={words}>
                <Icon name="check" size={14} />
                {words}
              </li>
            ))}
          </ul>
        )}
      </div>
    </Panel>
  )
}

const ownerOf = ({ owner_uid: uid }: Pick<AgentFamily, 'owner_uid'>): string => (uid === null ? '' : String(uid))

/** The form. What was typed stays while the agent is read again, and only what differs is sent. */
function RulesForm({ agent }: { readonly agent: AgentFamily }) {
  const isAdmin = hasRole(useMe(), 'admin')
  const [before, setBefore] = useState(() => ({ rules: rulesOf(agent), owner: ownerOf(agent) }))
  const [rules, setRules] = useState(before.rules)
  const [owner, setOwner] = useState(before.owner)
  const save = useMutation({
    mutationFn: (body: CallOptions<'updateAgentConsole'>['body']) => api('updateAgentConsole', { path: { id: agent.id }, body }),
    onSuccess: async changed => {
      const next = { rules: rulesOf(changed), owner: ownerOf(changed) }
      setBefore(next)
      setRules(next.rules)
      setOwner(next.owner)
      await agentsChanged()
      toast(text.savedToast)
    },
  })
  const changes = { ...changesOf(rules, before.rules), ...(owner === before.owner || owner === '' ? {} : { owner_uid: Number(owner) }) }
  const isChanged = Object.keys(changes).length > 0 && isReady(rules, before.rules)
  return (
    <form
      className="stack-5"
      noValidate
      onSubmit={event => {
        event.preventDefault()
        if (isChanged && !save.isPending) save.mutate(changes)
      }}
    >
      <p className="quiet">
        {text.rulesAbout} {!isAdmin && text.adminRules}
      </p>
      <RuleFields value={rules} onChange={setRules} hasRuns={agent.depth === 0} />
      {isAdmin && <OwnerField agent={agent} value={owner} onChange={setOwner} />}
      {save.error && <InlineError error={apiErrorOf(save.error)} />}
      <div>
        <Button look="primary" type="submit" isBusy={save.isPending} disabled={!isChanged}>
          {text.save}
        </Button>
      </div>
    </form>
  )
}

interface OwnerFieldProps {
  readonly agent: AgentFamily
  readonly value: string
  readonly onChange: (uid: string) => void
}

/** The member who answers for the agent. The present owner is there also when the first page of members does not have them. */
function OwnerField({ agent, value, onChange }: OwnerFieldProps) {
  const members = useQuery(apiQuery('listMembers', { query: { limit: membersMax } }))
  const known = members.data?.members ?? []
  const isElsewhere = agent.owner_uid !== null && !known.some(({ uid }) => uid === agent.owner_uid)
  return (
    <SelectField label={text.owner} hint={text.ownerHint} value={value} onChange={event => onChange(event.target.value)}>
      {agent.owner_uid === null && <option value="">{text.ownerNobody}</option>}
      {isElsewhere && <option value={ownerOf(agent)}>{agent.owner_name ?? `Member ${agent.owner_uid}`}</option>}
      {known.map(({ uid, name, email }) => (
        <option key={uid} value={uid}>
          {name ?? email}
        </option>
      ))}
    </SelectField>
  )
}
