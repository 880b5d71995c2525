/**
 * How far a person is in the wizard. The address says it, and this browser keeps it, so that the wizard goes on where it was left. No secret is in it. Decision
 * 0722 says why.
 */
import { type ConnectClient, clientOf } from '../connect/text.ts'

export const steps = ['provider', 'agent', 'client', 'call'] as const
export type Step = (typeof steps)[number]

/** The place in the wizard, as in the address. */
export interface Progress {
  readonly step?: Step
  /** The id of the agent that was made or chosen. Left out: a key calls. */
  readonly agent?: number
  readonly client?: ConnectClient
  /** The request id of the newest call before the wizard waits. A later call is the first one of this client. */
  readonly after?: string
}

const requestIdMax = 100

/** Reads the place from an address or from storage. Unknown values are left out. */
export function readProgress(from: Record<string, unknown>): Progress {
  const step = steps.find(one => one === from['step'])
  const agent = Number(from['agent'])
  const client = clientOf(from['client'])
  const after = typeof from['after'] === 'string' ? from['after'].slice(0, requestIdMax) : undefined
  return {
    ...(step === undefined ? {} : { step }),
    ...(Number.isInteger(agent) && agent > 0 ? { agent } : {}),
    ...(client === undefined ? {} : { client }),
    ...(after === undefined ? {} : { after }),
  }
}

const nameOf = (orgId: number): string => `brigade-start-${orgId}`

/** Returns where the person left the wizard in this organisation. */
export function savedProgress(orgId: number): Progress {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(nameOf(orgId)) ?? '{}')
    return typeof kept === 'object' && kept !== null ? readProgress(kept as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

/** Keeps the place. Null forgets it, because the wizard is done. */
export function saveProgress(orgId: number, progress: Progress | null): void {
  try {
    if (progress === null) localStorage.removeItem(nameOf(orgId))
    else localStorage.setItem(nameOf(orgId), JSON.stringify(progress))
  } catch {
    // The place is in the address.
  }
}
