import { Button } from '../../ui/forms/button.tsx'
import { Connect } from '../connect/connect.tsx'
import type { ConnectAgent } from '../connect/snippets.ts'
import type { ConnectClient } from '../connect/text.ts'
import { StepFrame } from './step-frame.tsx'
import { text } from './text.ts'

interface ClientStepProps {
  readonly agent: ConnectAgent | null
  readonly client: ConnectClient
  readonly onClient: (client: ConnectClient) => void
  readonly onNext: () => void
  readonly onBack: () => void
  readonly onSecret: (isShown: boolean) => void
}

/** The third step: a client, its key and its settings. */
export function ClientStep({ agent, client, onClient, onNext, onBack, onSecret }: ClientStepProps) {
  return (
    <StepFrame
      step="client"
      title={text.clientTitle}
      about={text.clientAbout(agent?.name ?? null)}
      actions={
        <>
          <Button look="primary" onClick={onNext}>
            {text.connected}
          </Button>
          <Button onClick={onBack}>{text.back}</Button>
        </>
      }
    >
      <Connect agent={agent} client={client} onClient={onClient} onSecret={onSecret} />
    </StepFrame>
  )
}
