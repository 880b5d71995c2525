import { fail } from '../../../../platform/errors.ts'
import { isObject, type JsonObject, objectsOf } from '../../../../platform/values/json.ts'
import { boundedObject } from '../../json/json-texts.ts'
import { textOf } from '../json.ts'
import { type CallableTool, callableTools, identityOfChoice, nameMaxChars, type ToolNames, toolSearchName } from '../tool-names.ts'

/** Translates tools of the Responses API to the hub format. A tool that the client runs becomes a function. A tool that a provider would run is refused. */

/**
 * Returns whether a tool is a web search that the provider would run. Codex always offers one next to its own tools. When there are other tools, the
 * gateway removes the web search, and the reply names it as dropped. The gateway refuses a request whose only tool is a web search, or that requires one.
 */
export function isWebSearch(tool: unknown): boolean {
  return isObject(tool) && tool['type'] === 'web_search'
}

/** Returns the list without a web search, or the same list if it has none. */
export const withoutWebSearch = (tools: readonly unknown[]): readonly unknown[] => (tools.some(isWebSearch) ? tools.filter(tool => !isWebSearch(tool)) : tools)

/** The name under which the omitted web search is reported. */
export const webSearchName = 'tools.web_search'

/**
 * Refuses tools that a provider would run. The gateway does not run them, and their cost is not part of its prices. Throws `bad_request`, and
 * `unsupported_operation` that names the tool.
 */
export function checkTools(tools: unknown, at: string): void {
  if (tools === undefined || tools === null) return
  if (!Array.isArray(tools)) throw fail('bad_request', { message: `"${at}" must be an array.` })
  const isBesideOthers = objectsOf(tools).some(tool => callableTools(tool).length > 0)
  checkEach(tools, at, tool => isBesideOthers && isWebSearch(tool))
}

function checkEach(tools: readonly unknown[], at: string, isLeftOut: (tool: unknown) => boolean): void {
  for (let index = 0; index < tools.length; index++) if (!isLeftOut(tools[index])) checkTool(tools[index], `${at}[${index}]`)
}

function checkTool(tool: unknown, at: string): void {
  if (!isObject(tool) || typeof tool['type'] !== 'string') throw fail('bad_request', { message: `"${at}" must be an object with a "type".` })
  const { type } = tool
  if (type === 'tool_search' && tool['execution'] === 'client') return
  if (type !== 'function' && type !== 'custom' && type !== 'namespace') throw unsupportedTool(type, at)
  if (typeof tool['name'] !== 'string' || tool['name'] === '') throw fail('bad_request', { message: `"${at}.name" must be a non-empty string.` })
  if (tool['name'].length > nameMaxChars) throw fail('bad_request', { message: `"${at}.name" is longer than ${nameMaxChars} characters.` })
  const { tools } = tool
  if (type !== 'namespace' || tools === undefined || tools === null) return
  if (!Array.isArray(tools)) throw fail('bad_request', { message: `"${at}.tools" must be an array.` })
  // Tools are never removed from a namespace, so a web search in a namespace is refused.
  checkEach(tools, `${at}.tools`, () => false)
}

function unsupportedTool(type: string, at: string): Error {
  return fail('unsupported_operation', {
    message: `Tools of type "${type.slice(0, 64)}" ("${at}") are not offered here. Offer tools of type function, custom or namespace, or tool_search with "execution": "client", which the client runs.`,
  })
}

/** Returns the number of tools that may be called, including those in namespaces and those that items of the input offer. */
export function callableCount({ tools, input }: JsonObject): number {
  let count = 0
  const add = (list: unknown): void => {
    for (const tool of objectsOf(list)) count += callableTools(tool).length
  }
  add(tools)
  for (const item of objectsOf(input)) add(item['tools'])
  return count
}

/**
 * Returns the hub's `tools` for every callable tool, in order. Only the first tool of a namespace has the namespace's description, so that it is not repeated
 * for each tool.
 */
export function hubTools(tools: readonly JsonObject[], names: ToolNames): readonly JsonObject[] {
  return tools.flatMap(tool => {
    const about = tool['type'] === 'namespace' ? textOf(tool['description']) : null
    return callableTools(tool).map((each, index) => hubTool(each, names, index === 0 ? about : null))
  })
}

function hubTool({ identity, declared }: CallableTool, names: ToolNames, aboutNamespace: string | null): JsonObject {
  const name = names.hubName(identity)
  const own = textOf(declared['description'])
  const description = [own, aboutNamespace === null || aboutNamespace === '' ? null : `(${aboutNamespace})`].filter(text => text !== null).join(' ')
  const about = description === '' ? {} : { description }
  if (identity.kind === 'custom')
    return { type: 'function', function: { name, description: freeformText(description, declared['format']), parameters: freeform } }
  const parameters = isObject(declared['parameters']) ? { parameters: declared['parameters'] } : {}
  const strict = declared['strict'] === true ? { strict: true } : {}
  const cached = isObject(declared['cache_control']) ? { cache_control: declared['cache_control'] } : {}
  return { type: 'function', function: { name, ...about, ...parameters, ...strict }, ...cached }
}

/** The parameters of a freeform tool. As a function, it takes its text as the only argument. */
const freeform: JsonObject = {
  type: 'object',
  properties: { input: { type: 'string', description: 'The whole input of the tool, as it is.' } },
  required: ['input'],
  additionalProperties: false,
}

function freeformText(description: string, format: unknown): string {
  const grammar = isObject(format) && format['type'] === 'grammar' ? textOf(format['definition']) : null
  if (grammar === null) return description
  const syntax = isObject(format) ? textOf(format['syntax']) : null
  return `${description}\n\nThe input must follow this ${syntax ?? 'formal'} grammar:\n${grammar}`.trim()
}

/** Returns the text of a freeform call from the arguments that the model wrote. Arguments that were cut off or are not JSON stay unchanged. */
export function freeformInput(argumentsText: string): string {
  const input = boundedObject(argumentsText)?.['input']
  // If the arguments were cut off or are not JSON, their text itself is the best result.
  return typeof input === 'string' ? input : argumentsText
}

/** Returns the hub's tool_choice, and the tools that the choice still allows. An undefined choice means the default. */
export function hubToolChoice(
  choice: unknown,
  tools: readonly JsonObject[],
  names: ToolNames,
): { readonly choice: unknown; readonly tools: readonly JsonObject[] } {
  if (choice === undefined || choice === null || choice === 'auto') return { choice: undefined, tools }
  if (choice === 'none' || choice === 'required') return { choice, tools }
  const named = identityOfChoice(choice)
  if (named !== null) return { choice: { type: 'function', function: { name: names.hubName(named) } }, tools }
  if (isObject(choice) && choice['type'] === 'allowed_tools') return allowedTools(choice, tools, names)
  if (isObject(choice) && choice['type'] === toolSearchName) return { choice: { type: 'function', function: { name: toolSearchName } }, tools }
  return { choice: undefined, tools }
}

const choiceTypes: readonly unknown[] = ['function', 'custom', 'allowed_tools', toolSearchName]

/** Refuses a `tool_choice` that is not offered here. Throws `bad_request` and `unsupported_operation`. */
export function checkToolChoice(choice: unknown): void {
  if (choice === undefined || choice === null || choice === 'auto' || choice === 'none' || choice === 'required') return
  const type = isObject(choice) ? textOf(choice['type']) : null
  if (type === null) throw fail('bad_request', { message: '"tool_choice" must be "auto", "none", "required" or an object with a "type".' })
  if (!choiceTypes.includes(type))
    throw fail('unsupported_operation', { message: `A tool_choice of type "${type.slice(0, 64)}" is not offered here: tools of providers are not run.` })
}

function allowedTools(choice: JsonObject, tools: readonly JsonObject[], names: ToolNames): { readonly choice: unknown; readonly tools: readonly JsonObject[] } {
  const allowed = new Set(
    objectsOf(choice['tools']).flatMap(entry => {
      const named = identityOfChoice(entry)
      return named === null ? [] : [names.hubName(named)]
    }),
  )
  const left = tools.filter(tool => isObject(tool['function']) && allowed.has(String(tool['function']['name'])))
  return { choice: choice['mode'] === 'required' ? 'required' : undefined, tools: left }
}
