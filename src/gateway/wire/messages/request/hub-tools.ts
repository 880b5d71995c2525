/** Translates tools of the messages format to the hub format. */
import { fail } from '../../../../platform/errors.ts'
import { isObject } from '../../../../platform/values/json.ts'
import type { ToolNames } from '../tool-names.ts'
import { takesStrict } from './strict-schema.ts'

type Fields = Readonly<Record<string, unknown>>

/** Fields of a tool that the translation reads. `type` is "custom" or left out. */
const carriedNames: readonly string[] = ['type', 'name', 'description', 'input_schema', 'strict', 'cache_control', 'defer_loading']

/**
 * Returns the tools of the request. `drop` receives the names of fields that cannot be carried. Throws `bad_request` for a tool without name or schema, and for
 * a tool that only the provider of the format can run.
 */
export function hubTools(tools: unknown, names: ToolNames, drop: (name: string) => void): readonly Record<string, unknown>[] {
  if (tools === undefined || tools === null) return []
  if (!Array.isArray(tools)) throw fail('bad_request', { message: '"tools" must be an array.' })
  return tools.map((tool: unknown, index) => hubTool(tool, `tools[${index}]`, names, drop))
}

/** Matches the format's own tool types that the client runs itself. They cost nothing in addition to their tokens. */
const clientRun = /^(?:custom$|bash_|text_editor_|computer_|memory_)/

/** Whether the client runs tools of that type. */
export function isClientRun(type: string): boolean {
  return clientRun.test(type)
}

/**
 * Throws `bad_request` for tools and MCP servers that the provider itself runs and charges for in addition to the tokens. Without the caller's own key, the
 * gateway would have to pay and could not know the cost of the call.
 */
export function refuseProviderRun({ tools, mcp_servers: servers }: Fields): void {
  const hasServers = Array.isArray(servers) && servers.length > 0
  const found: unknown = Array.isArray(tools)
    ? tools.find((tool: unknown) => isObject(tool) && typeof tool['type'] === 'string' && !clientRun.test(tool['type']))
    : undefined
  if (found === undefined && !hasServers) return
  const name = isObject(found) ? `The server tool "${String(found['type']).slice(0, 64)}"` : '"mcp_servers"'
  throw fail('bad_request', {
    message: `${name} would be charged beside the tokens, so it runs on your own provider credential only. Forward or save one, or leave it out.`,
  })
}

function hubTool(tool: unknown, at: string, names: ToolNames, drop: (name: string) => void): Record<string, unknown> {
  if (!isObject(tool)) throw fail('bad_request', { message: `"${at}" must be an object.` })
  const { type, name, description, input_schema: parameters, strict, cache_control: cacheControl } = tool
  if (type !== undefined && type !== null && type !== 'custom') {
    const shown = typeof type === 'string' ? `"${type.slice(0, 64)}"` : 'of that type'
    throw fail('bad_request', {
      message: `"${at}" is the server tool ${shown}, which only its own provider runs. Ask a claude-* model with your own credential, or leave the tool out.`,
    })
  }
  if (typeof name !== 'string' || name === '') throw fail('bad_request', { message: `"${at}.name" must be a non-empty string.` })
  if (!isObject(parameters)) throw fail('bad_request', { message: `"${at}.input_schema" must be a JSON schema object.` })
  for (const [key, value] of Object.entries(tool)) if (!carriedNames.includes(key) && value !== null && value !== false) drop(`tools.${key}`)
  const isStrict = strict === true && takesStrict(parameters)
  if (strict === true && !isStrict) drop('tools.strict')
  return {
    type: 'function',
    function: {
      name: names.toUpstream(name),
      ...(typeof description === 'string' ? { description } : {}),
      parameters,
      ...(typeof strict === 'boolean' && isStrict === strict ? { strict } : {}),
    },
    ...(isObject(cacheControl) ? { cache_control: cacheControl } : {}),
  }
}

/** Returns the hub's `tool_choice` and `parallel_tool_calls`. Without tools there is nothing to choose. Throws `bad_request`. */
export function hubToolChoice({ tool_choice: choice }: Fields, hasTools: boolean, names: ToolNames, drop: (name: string) => void): Record<string, unknown> {
  if (choice === undefined || choice === null) return {}
  if (!isObject(choice)) throw fail('bad_request', { message: '"tool_choice" must be an object with a "type".' })
  const chosen = chosenOf(choice, names)
  if (!hasTools) {
    if (chosen !== 'auto' && chosen !== 'none') drop('tool_choice')
    return {}
  }
  return { tool_choice: chosen, ...(choice['disable_parallel_tool_use'] === true ? { parallel_tool_calls: false } : {}) }
}

function chosenOf(choice: Fields, names: ToolNames): unknown {
  switch (choice['type']) {
    case 'auto':
    case 'none':
      return choice['type']
    case 'any':
      return 'required'
    case 'tool':
      if (typeof choice['name'] === 'string') return { type: 'function', function: { name: names.toUpstream(choice['name']) } }
      throw fail('bad_request', { message: '"tool_choice.name" must name a tool.' })
    default:
      throw fail('bad_request', { message: '"tool_choice.type" must be "auto", "any", "tool" or "none".' })
  }
}
