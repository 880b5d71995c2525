import { z } from 'zod'
import { endpointOf, reply } from '../../platform/endpoint.ts'
import { rowId } from '../../platform/values/row-id.ts'
import type { Memory } from '../memory.ts'
import { adminTwin, etagHeader, memoryCall, writeErrors } from './endpoint-parts.ts'

const row = endpointOf<{ memory: Memory }>()

/** Maximum size of a body. It has room for an object of the default maximum size with JSON escapes. */
const bodyLimitBytes = 32 * 1024 * 1024
const sourcesMax = 200

export const promoteEndpoints = {
  promote: row({
    at: 'POST /v1/me/memory/promote',
    twin: adminTwin('POST /me/memory/promote'),
    auth: 'key',
    access: { scope: 'full', role: 'admin', userBacked: true },
    tag: 'memory',
    summary: 'Writes a record of a workspace, or of the organisation, in the name of an owner or admin. The same name again replaces it.',
    input: {
      headers: z.object({ 'if-match': etagHeader, 'if-none-match': etagHeader }),
      body: z.strictObject({
        workspace_id: z.union([z.number(), z.string()]).nullish().describe('Left out: a record of the organisation.'),
        // The name may be absent here, because an unconfigured store is reported before a missing field.
        name: z.string().default('').describe('Name below records/, without a slash, for example security.md.'),
        content: z.string().optional(),
        source_keys: z
          .array(z.string())
          .max(sourcesMax)
          .default([])
          .describe('Keys that the content was made from; kept as the promoter gives them, 1024 bytes in all.'),
      }),
      bodyLimitBytes,
    },
    output: z.object({ ok: z.literal(true), key: z.string() }),
    errors: [...writeErrors, 'bad_name', 'not_found', 'memory_quota_exceeded', 'payload_too_large'],
    async handle({ memory }, { body, headers }, call) {
      const { key, etag } = await memory.promotions.promote(
        memoryCall(call),
        {
          workspaceId: body.workspace_id == null ? undefined : rowId(body.workspace_id),
          name: body.name,
          content: body.content,
          sourceKeys: body.source_keys,
        },
        { ifMatch: headers['if-match'], ifNoneMatch: headers['if-none-match'] },
      )
      return reply.json({ ok: true, key }, 200, { etag })
    },
  }),
}
