import { type ReactNode, useId, useState } from 'react'
import { Code } from '../../ui/data/code.tsx'
import { Tabs } from '../../ui/layout/tabs.tsx'
import './connect.css'
import { ConnectKey } from './connect-key.tsx'
import { ConnectPlan } from './connect-plan.tsx'
import { type ConnectAgent, curlCall, sdkSnippets } from './snippets.ts'
import { type ConnectClient, clientOf, clients, isPlanned, text } from './text.ts'
import type { KeyWanted } from './use-make-key.ts'

interface ConnectProps {
  /** The agent that calls. Null: a key calls. */
  readonly agent: ConnectAgent | null
  readonly client: ConnectClient
  readonly onClient: (client: ConnectClient) => void
  /** False: the person has the key already, so none is offered. */
  readonly offersKey?: boolean
  readonly onSecret?: (isShown: boolean) => void
}

/** How a client is connected: its key, and what the client needs to know. It is a step of the wizard, and a part of the pages of agents and keys. */
export function Connect({ agent, client, onClient, offersKey = true, onSecret }: ConnectProps) {
  return (
    <div className="connect">
      <Tabs label={text.clients} value={client} onChange={id => onClient(clientOf(id) ?? client)} tabs={clients}>
        <ol className="connect-steps">
          {offersKey && (
            <Step title={text.keyTitle}>
              {/* A key that was made for one client is not that of the next one. */}
              <ConnectKey key={client} wanted={keyFor(client, agent)} about={aboutKey(client, agent)} onSecret={onSecret} />
            </Step>
          )}
          <Step title={isPlanned(client) ? text.runTitle : text.programTitle}>
            {isPlanned(client) ? (
              <ConnectPlan client={client} agent={agent} />
            ) : client === 'sdk' ? (
              <Sdk agent={agent} />
            ) : (
              <Code text={curlCall(location.origin, agent)} />
            )}
          </Step>
        </ol>
      </Tabs>
    </div>
  )
}

/** Returns the key with the least rights: only a client that makes tokens of an agent needs a full key. */
function keyFor(client: ConnectClient, agent: ConnectAgent | null): KeyWanted {
  const label = clients.find(({ id }) => id === client)?.label ?? client
  return { name: agent === null ? label : `${agent.name} in ${label}`, scope: agent !== null && isPlanned(client) ? 'full' : 'inference' }
}

function aboutKey(client: ConnectClient, agent: ConnectAgent | null): string {
  if (agent === null) return text.keyPlain
  return isPlanned(client) ? text.keyAgent(agent.name) : text.keyHeader(agent.name)
}

function Step({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  const id = useId()
  return (
    <li aria-labelledby={id}>
      <h3 id={id}>{title}</h3>
      {children}
    </li>
  )
}

function Sdk({ agent }: { readonly agent: ConnectAgent | null }) {
  const all = sdkSnippets(location.origin, agent)
  const [id, setId] = useState<string>('openai')
  return (
    <div className="stack-3">
      <p className="quiet">{text.program}</p>
      <Tabs label={text.sdks} value={id} onChange={setId} tabs={all}>
        <Code text={all.find(one => one.id === id)?.text ?? ''} />
      </Tabs>
    </div>
  )
}
