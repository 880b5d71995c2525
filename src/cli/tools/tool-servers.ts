/** The MCP servers of the organisation and their tools, as a signed-in person reads them. */
import type { GatewayClient } from '../../agents/toolkit/gateway-client.ts'
import { CommandError, exitCodes, wrongUsage } from '../command-error.ts'
import { plain } from '../command-output.ts'
import type { ToolDetail } from './definition-text.ts'

/** A server in replies of the gateway. */
export interface ServerRow {
  readonly id: string
  readonly slug: string
  readonly name: string
  readonly url: string
  readonly state: 'on' | 'off'
  readonly residency: string
  readonly price_inr_per_call: number
  readonly last_sync_at: string | null
  readonly last_error: string | null
  readonly tools: Readonly<Record<'pending' | 'approved' | 'changed' | 'blocked' | 'gone', number>>
}

/** A tool of a server in a list. */
export interface PinRow {
  readonly name: string
  readonly state: string
  readonly hash: string
  readonly approvable: boolean
}

const root = '/me/tool-servers'
const pageSize = 200

/** Returns the path of a server. */
export const serverPath = ({ id }: Pick<ServerRow, 'id'>): string => `${root}/${encodeURIComponent(id)}`

/** Returns the servers of the organisation, oldest first. */
export async function everyServer(client: GatewayClient): Promise<readonly ServerRow[]> {
  return (await client.json<{ servers: ServerRow[] }>('GET', root)).servers
}

/** Returns the server with that slug or id. Throws CommandError (4). */
export async function serverNamed(client: GatewayClient, named: string): Promise<ServerRow> {
  const found = (await everyServer(client)).find(({ id, slug }) => slug === named || id === named)
  if (found !== undefined) return found
  throw new CommandError(`there is no MCP server "${plain(named)}". brigade tools servers shows them.`, { exitCode: exitCodes.notFound, code: 'not_found' })
}

/** Yields the tools of a server that are in a state. Pages are fetched as they are needed. */
export async function* everyPin(client: GatewayClient, server: ServerRow, state: 'pending' | 'changed'): AsyncGenerator<PinRow> {
  let cursor: string | undefined
  do {
    const query = { state, limit: pageSize, cursor }
    const page: { tools: PinRow[]; next_cursor: string | null } = await client.json('GET', `${serverPath(server)}/tools`, { query })
    yield* page.tools
    cursor = page.next_cursor ?? undefined
  } while (cursor !== undefined)
}

/** Returns a tool with both definitions. */
export async function detailOf(client: GatewayClient, server: ServerRow, name: string): Promise<ToolDetail> {
  return (await client.json<{ tool: ToolDetail }>('GET', `${serverPath(server)}/tools/${encodeURIComponent(name)}`)).tool
}

/** The named tools of one server. */
export interface NamedTools {
  readonly server: ServerRow
  readonly names: readonly string[]
}

/** Returns public names by their servers. Throws CommandError: 2 for a name without a server, and 4 for an unknown server. */
export async function byServer(client: GatewayClient, names: readonly string[]): Promise<readonly NamedTools[]> {
  const groups = new Map<string, string[]>()
  for (const name of new Set(names)) {
    const end = name.indexOf('__')
    if (end < 1) throw wrongUsage(`"${plain(name)}" is no name of a tool. A name is <server>__<tool>, as brigade tools pending shows it.`)
    const slug = name.slice(0, end)
    groups.set(slug, [...(groups.get(slug) ?? []), name])
  }
  const servers = await everyServer(client)
  return [...groups].map(([slug, own]) => {
    const server = servers.find(one => one.slug === slug)
    if (server === undefined)
      throw new CommandError(`there is no MCP server "${plain(slug)}". brigade tools servers shows them.`, { exitCode: exitCodes.notFound, code: 'not_found' })
    return { server, names: own }
  })
}
