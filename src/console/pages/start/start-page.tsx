import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useCallback, useEffect, useState } from 'react'
import { apiQuery } from '../../api/queries.ts'
import { useMe } from '../../app/me.tsx'
import { LinkButton } from '../../ui/forms/button.tsx'
import { Page } from '../../ui/layout/page.tsx'
import { Loaded, Panel } from '../../ui/layout/panel.tsx'
import { Skeleton } from '../../ui/layout/skeleton.tsx'
import type { ConnectAgent } from '../connect/snippets.ts'
import { AgentStep } from './agent-step.tsx'
import { CallStep } from './call-step.tsx'
import { ClientStep } from './client-step.tsx'
import { type Progress, type Step, savedProgress, saveProgress } from './progress.ts'
import { ProviderStep } from './provider-step.tsx'
import './start.css'
import { StepList } from './step-frame.tsx'
import { text } from './text.ts'
import { useFirstCall } from './use-first-call.ts'

const route = getRouteApi('/start')

/** The wizard from nothing to the first call. The address has the step, and the browser keeps it, so that a person can leave and come back. */
export function StartPage() {
  const me = useMe()
  const progress = route.useSearch()
  const navigate = route.useNavigate()
  const { step } = progress
  const [isComplete, setComplete] = useState(false)
  const go = useCallback((next: Progress, replace = false) => void navigate({ search: next, replace }), [navigate])
  useEffect(() => {
    if (step === undefined) go({ step: 'provider', ...savedProgress(me.org.id) }, true)
    else saveProgress(me.org.id, isComplete ? null : progress)
  }, [step, progress, isComplete, go, me.org.id])
  return (
    <Page title={text.title} intro={text.intro} actions={!isComplete && <LinkButton to="/">{text.leave}</LinkButton>}>
      <div className="start">
        <StepList current={step ?? 'provider'} isComplete={isComplete} onChoose={chosen => go({ ...progress, step: chosen })} />
        {step !== undefined && <CurrentStep step={step} progress={progress} go={go} onComplete={setComplete} />}
      </div>
    </Page>
  )
}

interface StepProps {
  readonly step: Step
  readonly progress: Progress
  readonly go: (next: Progress, replace?: boolean) => void
  readonly onComplete: (isComplete: boolean) => void
}

function CurrentStep(props: StepProps) {
  const { step, progress, go } = props
  if (step === 'provider') return <ProviderStep onNext={() => go({ ...progress, step: 'agent' })} />
  if (step === 'agent') {
    const { agent: _agent, after: _after, ...rest } = progress
    return <AgentStep onNext={chosen => go({ ...rest, ...chosen, step: 'client' })} onBack={() => go({ ...progress, step: 'provider' })} />
  }
  if (progress.agent === undefined) return <WithAgent {...props} agent={null} />
  return <OfAgent {...props} id={progress.agent} />
}

function OfAgent({ id, ...props }: StepProps & { readonly id: number }) {
  const agent = useQuery(apiQuery('getAgentConsole', { path: { id } }))
  if (agent.data !== undefined) return <WithAgent {...props} agent={agent.data} />
  return (
    <Panel>
      <Loaded query={agent} skeleton={<Skeleton lines={4} />}>
        {() => null}
      </Loaded>
    </Panel>
  )
}

/** The last two steps. Both wait for the first call, because a client may call before the person says that it is connected. */
function WithAgent({ step, progress, go, onComplete, agent }: StepProps & { readonly agent: ConnectAgent | null }) {
  const call = useFirstCall(progress.agent, progress.after)
  const [isSecretShown, setSecretShown] = useState(false)
  const hasArrived = call?.outcome === 'ok'
  useEffect(() => {
    // The page does not turn while a secret is shown that nobody can see again.
    if (hasArrived && step === 'client' && !isSecretShown) go({ ...progress, step: 'call' }, true)
    onComplete(hasArrived && step === 'call')
    return () => onComplete(false)
  }, [hasArrived, step, isSecretShown, progress, go, onComplete])
  if (step === 'call') return <CallStep agent={agent} call={call} onBack={() => go({ ...progress, step: 'client' })} onDone={() => go({ step: 'agent' })} />
  return (
    <ClientStep
      agent={agent}
      client={progress.client ?? 'claude-code'}
      onClient={client => go({ ...progress, client }, true)}
      onNext={() => go({ ...progress, step: 'call' })}
      onBack={() => go({ ...progress, step: 'agent' })}
      onSecret={setSecretShown}
    />
  )
}
