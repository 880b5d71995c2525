import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../api/api-error.ts'
import { api } from '../../api/call.ts'
import { apiQuery, queryClient } from '../../api/queries.ts'
import { useMe } from '../../app/me.tsx'
import { Button } from '../../ui/forms/button.tsx'
import { RadioCards } from '../../ui/forms/choices.tsx'
import { Combobox, type ComboOption } from '../../ui/forms/combobox.tsx'
import { TextField } from '../../ui/forms/field.tsx'
import { choiceOf, limitOf, MoneyField } from '../../ui/forms/money-field.tsx'
import { InlineError } from '../../ui/layout/error-panel.tsx'
import { toast } from '../../ui/overlays/toast.tsx'
import { text as agentText } from '../agents/text.ts'
import { agentsChanged, makeAgent } from '../agents/use-agents.ts'
import { StepFrame } from './step-frame.tsx'
import { text } from './text.ts'
import { newestCall } from './use-first-call.ts'

/** What the person chose: an agent or none, and the newest call before the wizard waits. */
export interface Chosen {
  readonly agent?: number
  readonly after?: string
}

const defaultBudgetInr = 500
const foundMax = 8

interface AgentStepProps {
  readonly onNext: (chosen: Chosen) => void
  readonly onBack: () => void
}

/** The second step: a new agent with a budget, one that the person has, or none. */
export function AgentStep({ onNext, onBack }: AgentStepProps) {
  const me = useMe()
  const mine = useQuery(apiQuery('listAgentsConsole', { query: { owner: 'me', state: 'active', limit: foundMax } }))
  const hasAgents = mine.data?.agents.some(({ playground }) => !playground) ?? false
  const [kind, setKind] = useState<'new' | 'old'>('new')
  const [name, setName] = useState('')
  const [budget, setBudget] = useState(choiceOf(defaultBudgetInr))
  const [picked, setPicked] = useState<readonly ComboOption[]>([])
  const limit = limitOf(budget)
  const isOld = hasAgents && kind === 'old'
  const go = useMutation({
    mutationFn: async (choice: 'form' | 'skip'): Promise<Chosen> => {
      if (choice === 'skip') return newestOf(undefined, me.user.id)
      if (isOld) return newestOf(Number(picked[0]?.value), me.user.id)
      const { agent, budgetError } = await makeAgent({ name: name.trim(), budgetInr: limit ?? null, rules: {} })
      if (budgetError !== null) toast(agentText.createdPartly(agent.name, budgetError), 'bad')
      await agentsChanged()
      return { agent: agent.id }
    },
    onSuccess: onNext,
  })
  const isReady = isOld ? picked.length > 0 : name.trim() !== '' && limit !== undefined
  const error = go.error === null ? null : apiErrorOf(go.error)
  const isNameWrong = error !== null && (error.message === agentText.nameTaken || ['bad_name', 'agent_name_taken'].includes(error.code))
  return (
    <StepFrame
      step="agent"
      title={text.agentTitle}
      about={text.agentAbout}
      onSubmit={() => isReady && !go.isPending && go.mutate('form')}
      actions={
        <>
          <Button look="primary" type="submit" isBusy={go.isPending} disabled={!isReady}>
            {isOld ? text.next : text.create}
          </Button>
          <Button onClick={onBack}>{text.back}</Button>
          <Button look="ghost" onClick={() => go.mutate('skip')}>
            {text.skip}
          </Button>
        </>
      }
    >
      {hasAgents && (
        <RadioCards
          label={text.which}
          value={kind}
          onChange={setKind}
          options={[
            { value: 'new', label: text.newAgent, hint: text.newAgentHint },
            { value: 'old', label: text.oldAgent, hint: text.oldAgentHint },
          ]}
        />
      )}
      {isOld ? (
        <Combobox label={text.chooseAgent} hint={text.chooseHint} name="my-agents" value={picked} onChange={setPicked} search={findMine} />
      ) : (
        <div className="start-fields">
          <TextField
            label={text.name}
            placeholder={text.namePlaceholder}
            maxLength={100}
            value={name}
            error={isNameWrong ? error.message : null}
            onChange={event => setName(event.target.value)}
          />
          <MoneyField label={text.budget} hint={text.budgetHint} value={budget} onChange={setBudget} />
        </div>
      )}
      {error && !isNameWrong && <InlineError error={error} />}
    </StepFrame>
  )
}

/** Returns the choice with the newest call that it has already, so that only a later one turns the page. */
async function newestOf(agent: number | undefined, uid: number | null): Promise<Chosen> {
  const { events } = await queryClient.fetchQuery({ ...newestCall(agent, uid), staleTime: 0 })
  const [newest] = events
  return { ...(agent === undefined ? {} : { agent }), ...(newest === undefined ? {} : { after: newest.request_id }) }
}

async function findMine(typed: string, signal: AbortSignal): Promise<ComboOption[]> {
  const q = typed.trim()
  const { agents } = await api('listAgentsConsole', { query: { owner: 'me', state: 'active', limit: foundMax, ...(q === '' ? {} : { q }) }, signal })
  return agents.filter(({ playground }) => !playground).map(({ id, name }) => ({ value: String(id), label: name, hint: `#${id}` }))
}
