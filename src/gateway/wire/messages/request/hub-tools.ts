/** Tools of the messages format as the hub format has them. */
import { fail } from '../../../../platform/errors.ts'
import { isObject } from '../../../../platform/values/json.ts'
import type { ToolNames } from '../tool-names.ts'
import { takesStrict } from './strict-schema.ts'

type Fields = Readonly<Record<string, unknown>>

/** What of a tool goes into the hub format. `type` is "custom" or left out. */
const carriedNames: readonly string[] = ['type', 'name', 'description', 'input_schema', 'strict', 'cache_control', 'defer_loading']

/**
 * The tools of the request. Names of what cannot be carried go to `drop`. Throws `bad_request` for a tool without name or schema, and for a tool that
 * only the provider of the format can run.
 */
export function hubTools(tools: unknown, names: ToolNames, drop: (name: string) => void): readonly Record<string, unknown>[] {
  if (tools === undefined || tools === null) return []
  if (!Array.isArray(tools)) throw fail('bad_request', { message: '"tools" must be an array.' })
  return tools.map((tool: unknown, index) => hubTool(tool, `tools[${index}]`, names, drop))
}

/** Tools of the format's own types that the client runs itself: they cost nothing beside their tokens. */
const clientRun = /^(?:custom$|bash_|text_editor_|computer_|memory_)/

/** Whether a tool of that type of the format is run by the client. */
export function isClientRun(type: string): boolean {
  return clientRun.test(type)
}

/**
 * Throws `bad_request` for tools and servers that the provider itself would run and charge for beside the tokens: on a key that is not the
 * caller's own nobody could say what the call costs.
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

/** `tool_choice` with what it says of parallel calls. Without tools there is nothing to choose from. Throws `bad_request`. */
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
