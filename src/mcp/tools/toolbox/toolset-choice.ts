/** The choice of tools that a client makes in the query of the MCP URL. */
import { fail } from '../../../platform/errors.ts'
import { type Toolset, toolsets } from './tool.ts'

/** The names that `?toolsets=` accepts: the sets, and `all` for all of them. */
const names: readonly string[] = [...toolsets, 'all']

/** The sets of a client that does not choose. */
const usual: ReadonlySet<Toolset> = new Set(toolsets.filter(name => name !== 'images'))

/**
 * Returns the toolsets that the URL of a request chooses, such as `?toolsets=core,memory` or `?toolsets=all`. Without the parameter, these are all
 * sets except images. Blanks and letter case do not matter. The parameter may occur more than once. Throws `bad_request` for an unknown name, because
 * after a typing mistake tools would seem to be missing.
 */
export function toolsetsOf(url: string | undefined): ReadonlySet<Toolset> {
  const query = url?.indexOf('?') ?? -1
  if (url === undefined || query === -1) return usual
  const asked = new URLSearchParams(url.slice(query + 1))
    .getAll('toolsets')
    .flatMap(list => list.split(','))
    .map(name => name.trim().toLowerCase())
    .filter(name => name !== '')
  if (asked.length === 0) return usual
  const unknown = asked.find(name => !names.includes(name))
  if (unknown !== undefined)
    throw fail('bad_request', { message: `There is no toolset "${unknown.slice(0, 40)}". The query ?toolsets= takes a comma list of ${names.join(', ')}.` })
  return new Set(toolsets.filter(name => asked.includes(name) || asked.includes('all')))
}
