import { apiErrorOf } from '../../../api/api-error.ts'
import { api } from '../../../api/call.ts'
import type { AgentAct } from '../agent-acts.tsx'
import type { Agent } from '../use-agents.ts'

/** An agent for which an act failed, with the sentence of the gateway. */
export interface FailedAct {
  readonly agent: Pick<Agent, 'id' | 'name'>
  readonly why: string
}

/** Number of requests that run at the same time. */
const lanes = 4

const operations = { pause: 'pauseAgentConsole', resume: 'resumeAgentConsole', end: 'revokeAgentConsole' } as const

/** Returns the agents that an act changes. One that is in that state already is left out. */
export const changedBy = (act: AgentAct, agents: readonly Agent[]): Agent[] =>
  agents.filter(({ status }) => status === { pause: 'active', resume: 'paused', end: status }[act])

/** Does an act for each agent, a few at a time. A failure does not stop the others. `onDone` receives the number that was tried so far. */
export async function runMany(act: AgentAct, agents: readonly Agent[], onDone: (done: number) => void): Promise<FailedAct[]> {
  const waiting = [...agents]
  const failed: FailedAct[] = []
  let done = 0
  const lane = async (): Promise<void> => {
    for (let agent = waiting.shift(); agent !== undefined; agent = waiting.shift()) {
      try {
        await api(operations[act], { path: { id: agent.id } })
      } catch (error) {
        failed.push({ agent, why: apiErrorOf(error).message })
      }
      onDone(++done)
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  return failed
}
