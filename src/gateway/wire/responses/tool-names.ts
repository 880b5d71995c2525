import { createHash } from 'node:crypto'
import { isObject, type JsonObject, objectsOf } from '../../../platform/values/json.ts'
import { textOf } from './json.ts'

/** How a tool is called in the Responses API. */
export interface ToolIdentity {
  readonly kind: 'function' | 'custom' | 'tool_search'
  /** null when the tool is in no namespace. */
  readonly namespace: string | null
  readonly name: string
}

/** The function that a client-side tool search is for the model. */
export const toolSearchName = 'tool_search'

const plainName = /^[a-zA-Z0-9_-]{1,64}$/
const keptChars = 55

/**
 * The names of a request's tools in the hub format, which knows no namespaces and no freeform tools, and the way back. The same body
 * gives the same names, so that a reply finds its way without anything being kept between request and reply.
 */
export class ToolNames {
  readonly #byHubName = new Map<string, ToolIdentity>()
  readonly #byIdentity = new Map<string, string>()

  /** Of a Responses request: its tools first, then what tool searches have loaded since. */
  static of(body: JsonObject): ToolNames {
    const names = new ToolNames()
    names.#addAll(body['tools'])
    for (const item of objectsOf(body['input'])) if (item['type'] === 'tool_search_output') names.#addAll(item['tools'])
    return names
  }

  /** The name for the model; of a tool that is in no list (an older turn called it) too. */
  hubName(identity: ToolIdentity): string {
    return this.#byIdentity.get(keyOf(identity)) ?? this.#add(identity)
  }

  /** The tool of a name that the model has called. A tool that was never offered stays as it is: the client reports that it does not exist. */
  identity(hubName: string): ToolIdentity {
    const known = this.#byHubName.get(hubName)
    if (known !== undefined) return known
    // Some models leave the namespace out when they call; that is understood where only one tool can be meant.
    const meant = [...this.#byHubName.values()].filter(({ name }) => name === hubName)
    return meant.length === 1 && meant[0] !== undefined ? meant[0] : { kind: 'function', namespace: null, name: hubName }
  }

  #addAll(tools: unknown): void {
    for (const tool of objectsOf(tools)) for (const { identity } of callableTools(tool)) this.hubName(identity)
  }

  #add(identity: ToolIdentity): string {
    const { namespace, name } = identity
    const joined = namespace === null ? name : `${namespace}__${name}`
    const hubName = plainName.test(joined) && !this.#byHubName.has(joined) ? joined : shortened(joined, keyOf(identity))
    this.#byHubName.set(hubName, identity)
    this.#byIdentity.set(keyOf(identity), hubName)
    return hubName
  }
}

/** A tool that the model may call, and how it was declared. */
export interface CallableTool {
  readonly identity: ToolIdentity
  readonly declared: JsonObject
}

/** The functions and freeform tools of one entry of `tools`: of a namespace all of its tools; none of a tool that a provider would run. */
export function callableTools(tool: JsonObject): readonly CallableTool[] {
  const name = textOf(tool['name'])
  switch (tool['type']) {
    case 'function':
    case 'custom':
      return name === null ? [] : [{ identity: { kind: tool['type'], namespace: null, name }, declared: tool }]
    case 'namespace':
      return objectsOf(tool['tools']).flatMap(inner => callableTools(inner).map(each => ({ ...each, identity: { ...each.identity, namespace: name } })))
    case 'tool_search':
      return [{ identity: { kind: 'tool_search', namespace: null, name: toolSearchName }, declared: tool }]
    default:
      return []
  }
}

/** The tool that an item of the conversation has called. */
export function identityOfCall(item: JsonObject): ToolIdentity {
  if (item['type'] === 'tool_search_call') return { kind: 'tool_search', namespace: null, name: toolSearchName }
  const namespace = textOf(item['namespace'])
  return { kind: item['type'] === 'custom_tool_call' ? 'custom' : 'function', namespace: namespace === '' ? null : namespace, name: textOf(item['name']) ?? '' }
}

/** The tool that an entry of `tool_choice` names, or null when it names none. */
export function identityOfChoice(choice: unknown): ToolIdentity | null {
  if (!isObject(choice) || (choice['type'] !== 'function' && choice['type'] !== 'custom')) return null
  const name = textOf(choice['name'])
  return name === null ? null : { kind: choice['type'], namespace: textOf(choice['namespace']), name }
}

const keyOf = ({ namespace, name }: ToolIdentity): string => JSON.stringify([namespace, name])

function shortened(name: string, key: string): string {
  const digest = createHash('sha256').update(key).digest('hex').slice(0, 8)
  return `${name.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, keptChars)}_${digest}`
}
