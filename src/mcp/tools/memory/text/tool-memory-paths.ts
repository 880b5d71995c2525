import { z } from 'zod'
import { mayCall } from '../../../../platform/security/principal.ts'
import type { MemoryRows } from '../../../mcp-rows.ts'
import { customTool, jsonOf, plainJson, type Tool } from '../../toolbox/tool.ts'
import { readsOnly } from './tool-memory-parts.ts'

const scopesShape = z.object({ user: z.string(), workspace: z.string().optional(), org: z.string(), shared: z.array(z.string()).optional() })
const storeShape = z.object({ bytes_used: z.number(), quota_mb: z.number(), journal_ttl_days: z.number(), history_versions: z.number() })
const outputSchema = z.object({
  scopes: scopesShape,
  write: z.array(z.string()).describe('You may read and write below these prefixes.'),
  read: z.array(z.string()).describe('You may only read below these: they are written by promotion.'),
  quota: z.object({ used_bytes: z.number(), limit_bytes: z.number() }),
  journal_ttl_days: z.number().describe('Days after which an entry of a journal expires.'),
  history_versions: z.number().describe('Number of versions of each key that are kept; 0: none.'),
})
type Paths = z.output<typeof outputSchema>

const bytesPerMb = 1_048_576

/** The tool memory_paths shows where the caller may read and write, and how much room is left. */
export function memoryPathsTool(rows: Pick<MemoryRows, 'paths' | 'getStore' | 'write'>): Tool {
  return customTool({
    name: 'memory_paths',
    toolset: 'memory',
    title: 'Memory scopes',
    description:
      'Where in shared memory this credential may read and write: its user, workspace, organisation, shares, and agents/, which is open to every credential of the organisation. Also how much of the quota is used.',
    annotations: readsOnly,
    row: rows.paths,
    inputSchema: z.object({}),
    outputSchema,
    async run(_args, { invoker, call }) {
      const { scopes } = z.object({ scopes: scopesShape }).parse(plainJson(jsonOf(await invoker.call(rows.paths, {}, call))))
      const store = storeShape.parse(plainJson(jsonOf(await invoker.call(rows.getStore, {}, call))))
      const { write, read } = prefixesOf(scopes, mayCall(call.principal, rows.write.access).ok)
      const paths: Paths = {
        scopes,
        write,
        read,
        quota: { used_bytes: store.bytes_used, limit_bytes: store.quota_mb * bytesPerMb },
        journal_ttl_days: store.journal_ttl_days,
        history_versions: store.history_versions,
      }
      return { text: textOf(paths), structured: paths }
    },
  })
}

/** Returns the prefixes that the caller may write and read. A token without the scope for writing may only read. */
function prefixesOf({ user, workspace, org, shared = [] }: Paths['scopes'], mayWrite: boolean): Pick<Paths, 'write' | 'read'> {
  const open = [user, 'agents/', ...(workspace === undefined ? [] : [`${workspace}journal/`]), ...shared]
  const records = [`${org}records/`, ...(workspace === undefined ? [] : [`${workspace}records/`])]
  return mayWrite ? { write: open, read: records } : { write: [], read: [...open, ...records] }
}

function textOf({ write, read, quota, journal_ttl_days: days, history_versions: versions }: Paths): string {
  const about = (prefix: string): string => {
    if (prefix === 'agents/') return `${prefix} (every credential of the organisation)`
    if (prefix.startsWith('users/')) return `${prefix} (your user only)`
    if (prefix.endsWith('/journal/')) return `${prefix} (the team of the workspace; entries end after ${days} days; add some with memory_append)`
    if (prefix.endsWith('/records/')) return `${prefix} (written by promotion only)`
    return `${prefix} (members of the share)`
  }
  const list = (title: string, prefixes: readonly string[]): string[] => (prefixes.length === 0 ? [] : [title, ...prefixes.map(prefix => `- ${about(prefix)}`)])
  return [
    ...list('You may read and write under:', write),
    ...list(write.length === 0 ? 'This token may not write. You may read under:' : 'You may read under:', read),
    `Used: ${quota.used_bytes} of ${quota.limit_bytes} bytes. ${versions === 0 ? 'No earlier versions are kept.' : `Up to ${versions} earlier versions of each key are kept: memory_history.`}`,
  ].join('\n')
}
