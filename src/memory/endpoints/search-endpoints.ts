import { z } from 'zod'
import { endpointOf } from '../../platform/endpoint.ts'
import type { Memory } from '../memory.ts'
import { author, memoryCall, objectErrors, readTwin } from './endpoint-parts.ts'

const row = endpointOf<{ memory: Memory }>()

const yesOrNo = z.enum(['true', 'false']).default('false')

export const searchEndpoints = {
  searchMemory: row({
    at: 'GET /v1/me/memory/search',
    twin: readTwin('GET /me/memory/search'),
    auth: 'key',
    access: { agentScope: 'memory:read' },
    tag: 'memory',
    summary: 'Lines of readable objects that have a text or match an expression. A call does a bounded amount of work; follow next_cursor until it is null.',
    input: {
      query: z.object({
        q: z.string().default('').describe('What to look for, 1 to 500 characters. Found in one line; never logged.'),
        regex: yesOrNo.describe('true: q is a regular expression of RE2 syntax, so no look-around and no back references.'),
        case: yesOrNo.describe('true: upper and lower case differ.'),
        prefix: z.string().default('').describe('Only keys that begin so.'),
        limit: z.coerce.number().int().min(1).max(200).default(50).describe('Lines of a page.'),
        cursor: z.string().max(8000).optional().describe('next_cursor of the page before, with the same q.'),
      }),
    },
    output: z.object({
      matches: z.array(z.object({ key: z.string(), line: z.int().describe('From 1.'), snippet: z.string(), etag: z.string(), author, modified: z.string() })),
      next_cursor: z.string().nullable().describe('null: everything was looked at. A page may be empty and still have a next one.'),
      scanned: z.object({ objects: z.int(), bytes: z.int() }),
    }),
    errors: [...objectErrors, 'bad_request', 'rate_limit_exceeded'],
    handle({ memory }, { query }, call) {
      const from = memoryCall(call)
      const { q, regex, case: isCase, prefix, limit, cursor } = query
      return memory.search.search(from, { text: q, isRegex: regex === 'true', isCaseSensitive: isCase === 'true', prefix, limit, cursor })
    },
  }),
}
