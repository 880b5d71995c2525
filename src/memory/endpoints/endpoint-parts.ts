/** The common parts of the endpoints of memory. */
import { z } from 'zod'
import type { At, Call } from '../../platform/endpoint.ts'
import { abortSignalOf } from '../../platform/loop/cancellation.ts'
import type { Principal } from '../../platform/security/principal.ts'
import type { MemoryCall } from '../access/memory-call.ts'

// The key may be absent in these schemas, because an unconfigured store is reported before a missing key.
export const keyQuery = z.object({ key: z.string().default('').describe('Relative path of the object, for example agents/triage/notes.md.') })
export const etagHeader = z.string().optional().describe('Quoted etag.')
export const author = z
  .object({
    user: z.string(),
    agent: z.string().optional().describe('Id of a verified agent, or in double quotes the label that a plain key gave itself.'),
    verified: z.boolean().optional().describe('Beside agent: true for an agent that authenticated with a token, false for a label.'),
  })
  .nullable()

export const authorNames = {
  author_name: z.string().nullable().describe('Name of the member, or of the key for a key without a user. null: the bytes did not come through the gateway.'),
  agent_name: z.string().optional().describe('Present only for a verified agent.'),
}

export const listed = z.object({ key: z.string(), size: z.int(), modified: z.string(), etag: z.string(), author, ...authorNames })

/** The second address of a row that reads memory, for signed-in people. An agent that reads here needs the scope too. */
export const readTwin = (at: At) => ({ at, auth: 'session', access: { agentScope: 'memory:read' } }) as const
/** The second address of a row that changes memory. Every signed-in person may call it, and the service checks the rights on the path. */
export const writeTwin = (at: At) => ({ at, auth: 'session', access: {} }) as const
/** The second address of a row for owners and admins. */
export const adminTwin = (at: At) => ({ at, auth: 'session', access: { role: 'admin' } }) as const

/** Maximum size of a body that the edge reads. It is larger than any sensible MEMORY_OBJECT_MAX_BYTES. The service checks that setting. */
export const bodyCeilingBytes = 64 * 1024 * 1024

export const objectErrors = ['memory_not_configured', 'bad_memory_key', 'forbidden', 'memory_store_failed', 'memory_store_busy'] as const
export const writeErrors = [...objectErrors, 'bad_request', 'agent_revoked_label', 'memory_conflict', 'memory_busy'] as const

/** Access rule for people who may configure the store. Only these people see the place of the store. */
export const storeAdmin = { scope: 'full', role: 'admin', userBacked: true } as const

/** Converts the call of a memory endpoint to the form that the services of memory use. */
export function memoryCall(call: Call<Principal>): MemoryCall {
  return { ...call, signal: abortSignalOf(call.signal) }
}

/** Returns whether the reader has the object already, because If-None-Match names its etag. */
export function isUnchanged(ifNoneMatch: string | undefined, etag: string): boolean {
  const named = (ifNoneMatch ?? '').split(',').map(part => part.trim().replace(/^W\//, ''))
  return named.includes(etag) || named.includes('*')
}
