/** The choice of tools that a client makes in the query of the MCP URL. */
import { fail } from '../../../platform/errors.ts'
import { searchToolset, type Toolset, toolsets } from './tool.ts'

/** The set of the tools of all MCP servers of the organisation, and the start of the set of one server. */
const serverTools = 'tools'
const oneServer = /^tools:[a-z][a-z0-9-]{0,15}$/
/** Maximum number of servers that a URL names. */
const serversMax = 10

/** The names that `?toolsets=` accepts: the sets, `all` for all of them, and the tools of servers. */
const choosable: readonly string[] = [...toolsets, 'all']
const names: readonly string[] = [...choosable, serverTools, `${serverTools}:<server>`, searchToolset]

/** The servers whose tools a client chose. */
export type ToolServers = 'all' | ReadonlySet<string>

/** The sets of a client that does not choose. */
const usual: ReadonlySet<Toolset> = new Set(toolsets.filter(name => name !== 'images'))

/**
 * Returns the toolsets that the URL of a request chooses, such as `?toolsets=core,memory` or `?toolsets=all`. Without the parameter, these are all
 * sets except images. Blanks and letter case do not matter. The parameter may occur more than once. Throws `bad_request` for an unknown name, because
 * after a typing mistake tools would seem to be missing.
 */
export function toolsetsOf(url: string | undefined): ReadonlySet<Toolset> {
  const asked = askedOf(url)
  if (asked.length === 0) return usual
  const unknown = asked.find(name => name !== serverTools && !oneServer.test(name) && !choosable.includes(name))
  if (unknown !== undefined)
    throw fail('bad_request', { message: `There is no toolset "${unknown.slice(0, 40)}". The query ?toolsets= takes a comma list of ${names.join(', ')}.` })
  const own = toolsets.filter(name => asked.includes(name) || asked.includes('all'))
  return new Set(asked.includes(searchToolset) ? [...own, searchToolset] : own)
}

/**
 * Returns the servers whose tools the URL of a request chooses: all with `?toolsets=tools`, some with `?toolsets=tools:crm,tools:git`. Null: none. The set
 * `all` does not contain them. Throws `bad_request` for too many servers.
 */
export function toolServersOf(url: string | undefined): ToolServers | null {
  const asked = askedOf(url)
  if (asked.includes(serverTools)) return 'all'
  const slugs = new Set(asked.filter(name => oneServer.test(name) && name !== searchToolset).map(name => name.slice(serverTools.length + 1)))
  if (slugs.size > serversMax)
    throw fail('bad_request', { message: `The query ?toolsets= names at most ${serversMax} servers. The set tools has all of them.` })
  return slugs.size === 0 ? null : slugs
}

/** Returns the names in the query, in lower case. */
function askedOf(url: string | undefined): readonly string[] {
  const query = url?.indexOf('?') ?? -1
  if (url === undefined || query === -1) return []
  return new URLSearchParams(url.slice(query + 1))
    .getAll('toolsets')
    .flatMap(list => list.split(','))
    .map(name => name.trim().toLowerCase())
    .filter(name => name !== '')
}
