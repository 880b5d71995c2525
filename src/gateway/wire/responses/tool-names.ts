import { createHash } from 'node:crypto'
import { isObject, type JsonObject, objectsOf } from '../../../platform/values/json.ts'
import { textOf } from './json.ts'

/** The identity of a tool in the Responses API. */
export interface ToolIdentity {
  readonly kind: 'function' | 'custom' | 'tool_search'
  /** null: the tool is in no namespace. */
  readonly namespace: string | null
  readonly name: string
}

/** The function name under which the model sees a client-side tool search. */
export const toolSearchName = 'tool_search'

const plainName = /^[a-zA-Z0-9_-]{1,64}$/
const keptChars = 55
/** Longest name of a tool. Providers take 64 characters, and longer names are shortened for them. */
export const nameMaxChars = 1000

/**
 * Maps the tools of a request to names in the hub format, and back. The hub format has no namespaces and no freeform tools. The same body gives the same
 * names, so nothing has to be stored between request and reply.
 */
export class ToolNames {
  readonly #byHubName = new Map<string, ToolIdentity>()
  readonly #byIdentity = new Map<string, string>()
  /** The tools by their name without the namespace. Null when several tools have that name. */
  readonly #byPlainName = new Map<string, ToolIdentity | null>()

  /** Returns the names of a Responses request: first its tools, then the tools that its items offer. */
  static of(body: JsonObject): ToolNames {
    const names = new ToolNames()
    names.#addAll(body['tools'])
    names.#addAll(toolsOfItems(body))
    return names
  }

  /** Returns the hub name of a tool. The tool may be in no list, because an earlier turn may have called it. */
  hubName(identity: ToolIdentity): string {
    return this.#byIdentity.get(keyOf(identity)) ?? this.#add(identity)
  }

  /** Returns the tool for a name that the model has called. A tool that was never offered keeps its name, and the client reports that it does not exist. */
  identity(hubName: string): ToolIdentity {
    const known = this.#byHubName.get(hubName)
    if (known !== undefined) return known
    // Some models omit the namespace in a call. The call is accepted if only one tool has that name.
    return this.#byPlainName.get(hubName) ?? { kind: 'function', namespace: null, name: hubName }
  }

  #addAll(tools: unknown): void {
    for (const tool of objectsOf(tools)) for (const { identity } of callableTools(tool)) this.hubName(identity)
  }

  #add(identity: ToolIdentity): string {
    const { namespace, name } = identity
    const joined = namespace === null ? name : `${namespace}__${name}`
    const hubName = plainName.test(joined) && !this.#byHubName.has(joined) ? joined : shortened(joined, keyOf(identity))
    this.#byHubName.set(hubName, identity)
    this.#byPlainName.set(name, this.#byPlainName.has(name) ? null : identity)
    this.#byIdentity.set(keyOf(identity), hubName)
    return hubName
  }
}

/** A tool that the model may call, and its declaration. */
export interface CallableTool {
  readonly identity: ToolIdentity
  readonly declared: JsonObject
}

/** Returns the tools that items of the input offer: those that a search has loaded, and additional ones. */
export function toolsOfItems({ input }: JsonObject): readonly JsonObject[] {
  return objectsOf(input).flatMap(({ type, tools }) => (type === 'tool_search_output' || type === 'additional_tools' ? objectsOf(tools) : []))
}

/** Returns the functions and freeform tools of one entry of `tools`: all tools of a namespace, and no tool that a provider would run. */
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

/** Returns the tool that an item of the conversation has called. */
export function identityOfCall(item: JsonObject): ToolIdentity {
  if (item['type'] === 'tool_search_call') return { kind: 'tool_search', namespace: null, name: toolSearchName }
  const namespace = textOf(item['namespace'])
  return { kind: item['type'] === 'custom_tool_call' ? 'custom' : 'function', namespace: namespace === '' ? null : namespace, name: textOf(item['name']) ?? '' }
}

/** Returns the tool that an entry of `tool_choice` names, or null if it names none. */
export function identityOfChoice(choice: unknown): ToolIdentity | null {
  if (!isObject(choice) || (choice['type'] !== 'function' && choice['type'] !== 'custom')) return null
  const name = textOf(choice['name'])
  return name === null ? null : { kind: choice['type'], namespace: textOf(choice['namespace']), name }
}

const keyOf = ({ namespace, name }: ToolIdentity): string => JSON.stringify([namespace, name])

function shortened(name: string, key: string): string {
  // A name may have millions of characters, so it is cut first.
  const digest = createHash('sha256').update(key).digest('hex').slice(0, 8)
  return `${name.slice(0, keptChars).replace(/[^a-zA-Z0-9_-]/g, '_')}_${digest}`
}
