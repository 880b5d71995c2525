import { z } from 'zod'
import { endpointOf } from '../../platform/endpoint.ts'
import type { Memory } from '../memory.ts'
import { adminTwin } from './endpoint-parts.ts'

const row = endpointOf<{ memory: Memory }>()

const count = z.int().min(0)

export const reconcileEndpoints = {
  reconcile: row({
    at: 'POST /v1/me/memory/reconcile',
    twin: adminTwin('POST /me/memory/reconcile'),
    auth: 'key',
    access: { scope: 'full', role: 'admin', userBacked: true },
    tag: 'memory',
    summary: 'Compare the bucket with the index now, and correct list and quota if somebody changed the bucket directly.',
    input: {},
    output: z.object({
      ok: z.literal(true),
      checked: count.describe('Objects in the bucket that can be read here.'),
      added: count,
      changed: count,
      removed: count,
      skipped: count.describe('Differences that a running write will settle.'),
      orphans_removed: count.describe('Leavings under .versions/ and .brigade-probe/.'),
      bytes_used: count,
    }),
    errors: ['memory_not_configured', 'forbidden', 'memory_store_failed', 'memory_store_busy', 'memory_busy'],
    // The comparison continues after its caller disconnects, because every correction is useful by itself.
    handle: async ({ memory }, _input, call) => ({ ok: true, ...(await memory.reconcile.run(call.principal.orgId, new AbortController().signal)) }),
  }),
}
