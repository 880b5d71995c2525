import { hash } from 'node:crypto'
import { fail } from '../../../platform/errors.ts'
import { isObject } from '../../../platform/values/json.ts'

/** Converts names of tools to names that an upstream accepts, and back. */
export interface ToolNames {
  toUpstream(name: string): string
  toClient(name: string): string
}

/** The function names that every provider accepts. */
const takenName = /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/
/** Number of characters of a name that its replacement keeps. The rest of the 64 characters makes the replacement unique. */
const keptChars = 54
/** Longest name. Each call in a reply repeats the name that the client gave, so many calls with a long one would fill the memory. */
const nameMaxChars = 1000

/**
 * Returns the names of one request. A name that some provider would refuse (over 64 characters, other characters, or a digit first) is replaced. The
 * replacement depends only on the names in the request, so it is the same in every turn, and the reply can be converted back. Throws `bad_request` for a name
 * above 1,000 characters.
 */
export function toolNamesOf(body: Readonly<Record<string, unknown>>): ToolNames {
  const given = namesIn(body)
  const odd = [...given].filter(name => !takenName.test(name))
  if (odd.length === 0) return asTheyAre
  if (odd.some(({ length }) => length > nameMaxChars)) throw fail('bad_request', { message: `A name of a tool is longer than ${nameMaxChars} characters.` })
  const upstream = new Map<string, string>()
  const client = new Map<string, string>()
  for (const name of odd) {
    const changed = changedName(name, candidate => !given.has(candidate) && !client.has(candidate))
    upstream.set(name, changed)
    client.set(changed, name)
  }
  return { toUpstream: name => upstream.get(name) ?? name, toClient: name => client.get(name) ?? name }
}

const asTheyAre: ToolNames = { toUpstream: name => name, toClient: name => name }

function changedName(name: string, isFree: (candidate: string) => boolean): string {
  // A name may have millions of characters, so it is cut first.
  const start = name
    .slice(0, keptChars)
    .replace(/[^a-zA-Z0-9_-]/g, '_')
    .replace(/^(?=[^a-zA-Z_])/, '_')
    .slice(0, keptChars)
  for (let salt = 0; ; salt++) {
    const candidate = `${start}_${hash('sha256', `${salt}${name}`, 'hex').slice(0, 8)}`
    if (isFree(candidate)) return candidate
  }
}

/** Returns every tool name in the request that is defined or was used in an earlier turn. */
function namesIn({ tools, messages }: Readonly<Record<string, unknown>>): ReadonlySet<string> {
  const names = new Set<string>()
  const add = (holder: unknown): void => {
    if (isObject(holder) && typeof holder['name'] === 'string') names.add(holder['name'])
  }
  if (Array.isArray(tools)) tools.forEach(add)
  for (const message of Array.isArray(messages) ? messages : []) {
    const content: unknown = isObject(message) ? message['content'] : undefined
    if (Array.isArray(content)) for (const block of content) if (isObject(block) && block['type'] === 'tool_use') add(block)
  }
  return names
}
