import { z } from 'zod'
import { endpointOf, reply } from '../../platform/endpoint.ts'
import type { Memory } from '../memory.ts'
import { bodyCeilingBytes, memoryCall, writeErrors, writeTwin } from './endpoint-parts.ts'

const row = endpointOf<{ memory: Memory }>()

export const appendEndpoints = {
  appendMemory: row({
    at: 'POST /v1/me/memory/append',
    twin: writeTwin('POST /me/memory/append'),
    auth: 'key',
    access: { agentScope: 'memory:write' },
    tag: 'memory',
    summary:
      'Add an entry to a folder that you may write to, usually a journal. Every entry is a separate object, so entries of concurrent writers are all kept.',
    input: {
      body: z.object({
        path: z.string().default('').describe('The folder, for example workspaces/3/journal. The entry is <path>/<day>/<id>-<author>.md.'),
        content: z.string().optional().describe('Text of the entry.'),
      }),
      bodyLimitBytes: bodyCeilingBytes,
    },
    output: z.object({ ok: z.literal(true), key: z.string(), size: z.int(), etag: z.string() }),
    status: 201,
    errors: [...writeErrors, 'memory_quota_exceeded', 'payload_too_large'],
    audit: false,
    async handle({ memory }, { body }, call) {
      const from = memoryCall(call)
      const made = await memory.appends.append(from, body.path, body.content)
      return reply.json({ ok: true, ...made }, 201, { etag: made.etag })
    },
  }),
}
