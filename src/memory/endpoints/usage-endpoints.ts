import { z } from 'zod'
import { endpointOf } from '../../platform/endpoint.ts'
import type { Memory } from '../memory.ts'
import { readTwin } from './endpoint-parts.ts'

const row = endpointOf<{ memory: Memory }>()

const count = z.int().min(0)

export const memoryUsageEndpoints = {
  memoryUsage: row({
    at: 'GET /v1/me/memory/usage',
    twin: readTwin('GET /me/memory/usage'),
    auth: 'key',
    access: { agentScope: 'memory:read' },
    tag: 'memory',
    summary: 'How much of its memory the organisation uses: bytes and objects, and the bytes that it may use.',
    input: {},
    output: z.object({
      bytes_used: count.describe('Without versions and running writes.'),
      quota_bytes: count.describe('A write beyond it is refused.'),
      objects: count,
      history_bytes: count.describe('Bytes of versions. They do not count against the quota.'),
    }),
    errors: ['memory_not_configured'],
    async handle({ memory }, _input, { principal }) {
      await memory.configured(principal.orgId)
      return memory.config.usage(principal.orgId)
    },
  }),
}
