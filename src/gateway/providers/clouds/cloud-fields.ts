/**
 * Decides which parts of a messages request go to a cloud. The clouds take fewer fields and betas than Anthropic itself, and refuse a whole request
 * for one that they do not know. A field and the beta that introduced it go together or not at all. Decision 0869 gives the reasons.
 */
import { isObject, type JsonObject } from '../../../platform/values/json.ts'
import type { CloudId, Provider } from '../provider.ts'

/** The fields that both clouds take from every model. */
const plainFields: ReadonlySet<string> = new Set(
  [
    ['model', 'messages', 'system', 'tools', 'tool_choice', 'max_tokens', 'stop_sequences', 'stream', 'metadata'],
    ['temperature', 'top_p', 'top_k', 'thinking', 'anthropic_version', 'anthropic_beta'],
  ].flat(),
)

/** The betas that belong to no field and that a cloud documents. */
const plainBetas: Readonly<Record<CloudId, RegExp>> = {
  'bedrock-invoke': /^(?:computer-use|token-efficient-tools|interleaved-thinking|output-128k|dev-full-thinking|context-1m)-\d/,
  vertex: /^(?:computer-use|token-efficient-tools|interleaved-thinking|fine-grained-tool-streaming|output-128k|context-1m)-\d/,
}

/** A field and the betas that introduced it. A name with a dot is a member inside other fields. */
interface FieldPair {
  readonly field: string
  readonly betas: RegExp
}

const pairs: readonly FieldPair[] = [
  { field: 'context_management', betas: /^context-management-\d/ },
  { field: 'output_config', betas: /^effort-\d/ },
  { field: 'output_config.task_budget', betas: /^task-budgets-\d/ },
  { field: 'output_format', betas: /^structured-outputs-\d/ },
  { field: 'mcp_servers', betas: /^mcp-client-\d/ },
  { field: 'container', betas: /^(?:code-execution|skills)-\d/ },
  { field: 'speed', betas: /^fast-mode-\d/ },
  { field: 'cache_control.scope', betas: /^prompt-caching-scope-\d/ },
  { field: 'tools.defer_loading', betas: /^(?:tool-search-tool|advanced-tool-use)-\d/ },
  { field: 'tools.input_examples', betas: /^(?:tool-examples|advanced-tool-use)-\d/ },
]

/** The prefix of the name of a beta in `fields` of a provider's row, and in the list of dropped parameters. */
const betaPrefix = 'anthropic-beta.'

/** The parts of a request. */
export interface NarrowedRequest {
  /** The body without what the cloud refuses. It is the given object when nothing inside a field has changed. */
  readonly body: JsonObject
  /** The names of the fields of the body that are not sent. They are still in `body`. */
  readonly withheld: readonly string[]
  readonly betas: readonly string[]
  /** The names of everything that is not sent. */
  readonly dropped: readonly string[]
}

/** Returns whether the row of a provider lists the field, or a beta that introduced it. */
export function takesField(field: string, { fields }: Pick<Provider, 'fields'>): boolean {
  if (fields === undefined) return false
  if (fields.has(field)) return true
  const pair = pairs.find(each => each.field === field)
  return pair !== undefined && [...fields].some(name => name.startsWith(betaPrefix) && pair.betas.test(name.slice(betaPrefix.length)))
}

/** Returns the parts of a request that the cloud takes. With `takesEffort`, the model takes `output_config` without a beta. */
export function narrowedFor(
  cloud: CloudId,
  body: JsonObject,
  given: readonly string[],
  provider: Pick<Provider, 'fields'>,
  takesEffort: boolean,
): NarrowedRequest {
  const takes = (field: string): boolean => (field === 'output_config' && takesEffort) || takesField(field, provider)
  const withheld = Object.keys(body).filter(name => !plainFields.has(name) && !takes(name))
  const refused = pairs.filter(({ field }) => !takes(field))
  const betas = given.filter(beta => isTaken(cloud, beta, refused, provider))
  const inside = withoutInside(body, new Set(refused.map(({ field }) => field)))
  const absent = new Set(Object.entries(body).flatMap(([name, value]) => (value === null || value === undefined ? [name] : [])))
  return {
    body: inside.body,
    withheld,
    betas,
    dropped: [
      ...withheld.filter(name => !absent.has(name)),
      ...inside.dropped.filter(name => !name.startsWith('output_config.') || !withheld.includes('output_config')),
      ...given.filter(beta => !betas.includes(beta)).map(beta => `${betaPrefix}${beta}`),
    ],
  }
}

function isTaken(cloud: CloudId, beta: string, refused: readonly FieldPair[], { fields }: Pick<Provider, 'fields'>): boolean {
  if (refused.some(({ betas }) => betas.test(beta))) return false
  return plainBetas[cloud].test(beta) || fields?.has(`${betaPrefix}${beta}`) === true || pairs.some(({ betas }) => betas.test(beta))
}

/** Removes members inside other fields. */
function withoutInside(body: JsonObject, refused: ReadonlySet<string>): { readonly body: JsonObject; readonly dropped: readonly string[] } {
  const dropped = new Set<string>()
  const mender = new Mender(refused, dropped)
  const changes = {
    ...mender.change(body, 'system', value => mender.list(value, part => mender.part(part))),
    ...mender.change(body, 'messages', value => mender.list(value, message => mender.message(message))),
    ...mender.change(body, 'tools', value => mender.list(value, tool => mender.tool(tool))),
    ...mender.change(body, 'output_config', value => (isObject(value) ? mender.without(value, 'task_budget', 'output_config.task_budget') : value)),
  }
  return dropped.size === 0 ? { body, dropped: [] } : { body: { ...body, ...changes }, dropped: [...dropped] }
}

/** Copies the parts of a body that lose a member. All other parts stay the same objects. */
class Mender {
  readonly #refused: ReadonlySet<string>
  readonly #dropped: Set<string>

  constructor(refused: ReadonlySet<string>, dropped: Set<string>) {
    this.#refused = refused
    this.#dropped = dropped
  }

  /** Returns an object with the changed field. Returns an empty one when nothing changes. */
  change(body: JsonObject, name: string, made: (value: unknown) => unknown): JsonObject {
    const value = body[name]
    const changed = value === undefined ? value : made(value)
    return changed === value ? {} : { [name]: changed }
  }

  list(value: unknown, made: (element: JsonObject) => JsonObject): unknown {
    if (!Array.isArray(value)) return value
    const changed: unknown[] = value.map((element: unknown) => (isObject(element) ? made(element) : element))
    return changed.some((element, index) => element !== value[index]) ? changed : value
  }

  without(value: JsonObject, member: string, name: string): JsonObject {
    if (value[member] === undefined || !this.#refused.has(name)) return value
    const { [member]: _refused, ...others } = value
    this.#dropped.add(name)
    return others
  }

  message(message: JsonObject): JsonObject {
    const changed = this.change(message, 'content', value => this.list(value, part => this.part(part)))
    return Object.keys(changed).length === 0 ? message : { ...message, ...changed }
  }

  /** A part of a prompt. The result of a tool has parts of its own. */
  part(part: JsonObject): JsonObject {
    const marked = this.#withoutScope(part)
    const inner = this.change(marked, 'content', value => this.list(value, each => this.#withoutScope(each)))
    return Object.keys(inner).length === 0 ? marked : { ...marked, ...inner }
  }

  tool(tool: JsonObject): JsonObject {
    const loaded = this.without(this.#withoutScope(tool), 'defer_loading', 'tools.defer_loading')
    return this.without(loaded, 'input_examples', 'tools.input_examples')
  }

  #withoutScope(part: JsonObject): JsonObject {
    const mark = part['cache_control']
    if (!isObject(mark)) return part
    const plain = this.without(mark, 'scope', 'cache_control.scope')
    return plain === mark ? part : { ...part, cache_control: plain }
  }
}
