import { useState } from 'react'
import { Panel } from '../../../../ui/layout/panel.tsx'
import { Connect } from '../../../connect/connect.tsx'
import { type ConnectClient, text as connectText } from '../../../connect/text.ts'
import type { TabProps } from '../../agent-tabs.ts'
import { useWhomToAsk } from '../../use-agents.ts'
import { text } from '../text.ts'

/** How a program is connected to the agent. It is the step of the wizard, for an agent that exists. */
export function ConnectTab({ agent, isMine }: TabProps) {
  const [client, setClient] = useState<ConnectClient>('claude-code')
  const askWhom = useWhomToAsk()
  return (
    <Panel title={connectText.title} note={text.connectNote}>
      {agent.status === 'revoked' ? (
        <p className="quiet">{text.endedMint}</p>
      ) : agent.playground ? (
        <p className="quiet">{text.playgroundConnect}</p>
      ) : isMine ? (
        <Connect agent={agent} client={client} onClient={setClient} />
      ) : (
        <p className="quiet">{askWhom(agent)}</p>
      )}
    </Panel>
  )
}
