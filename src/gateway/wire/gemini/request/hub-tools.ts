/** Translates tools of Google's API to the hub format. A tool that Google itself would run is refused. */
import { fail } from '../../../../platform/errors.ts'
import { isObject, type JsonObject, objectsOf } from '../../../../platform/values/json.ts'
import type { ToolNames } from '../../messages/tool-names.ts'
import { camelOf, fieldOf, objectAt, textAt } from '../fields.ts'
import { jsonSchemaOf } from './json-schema.ts'

/** The tools and the choice among them, as fields of the hub format. */
export function hubToolsOf(body: JsonObject, names: ToolNames, drop: (name: string) => void): JsonObject {
  const offered = declared(body, names, drop)
  const config = objectAt(body, 'toolConfig')
  for (const name of Object.keys(config)) if (camelOf(name) !== 'functionCallingConfig') drop(`toolConfig.${camelOf(name)}`)
  const calling = objectAt(config, 'functionCallingConfig')
  const mode = textAt(calling, 'mode').toUpperCase()
  const given = fieldOf(calling, 'allowedFunctionNames')
  const allowed = new Set(Array.isArray(given) ? given.map(name => names.toUpstream(String(name))) : [])
  const tools = allowed.size === 0 ? offered : offered.filter(tool => allowed.has(String(objectAt(tool, 'function')['name'])))
  if (tools.length === 0) {
    if (mode === 'ANY')
      throw fail('bad_request', { message: '"toolConfig.functionCallingConfig.mode" demands a call, and no function that may be called is offered.' })
    return {}
  }
  return { tools, ...choiceOf(mode, tools) }
}

function choiceOf(mode: string, tools: readonly JsonObject[]): JsonObject {
  const [only] = tools
  if (mode === 'NONE') return { tool_choice: 'none' }
  if (mode !== 'ANY') return {}
  if (tools.length > 1 || only === undefined) return { tool_choice: 'required' }
  return { tool_choice: { type: 'function', function: { name: objectAt(only, 'function')['name'] } } }
}

function declared({ tools }: JsonObject, names: ToolNames, drop: (name: string) => void): readonly JsonObject[] {
  if (tools === undefined || tools === null) return []
  if (!Array.isArray(tools)) throw fail('bad_request', { message: '"tools" must be an array.' })
  return tools.flatMap((tool: unknown, index) => {
    const at = `tools[${index}]`
    if (!isObject(tool)) throw fail('bad_request', { message: `"${at}" must be an object.` })
    refuseOwnTool(tool, at)
    return objectsOf(fieldOf(tool, 'functionDeclarations')).map((declaration, place) =>
      hubTool(declaration, `${at}.functionDeclarations[${place}]`, names, drop),
    )
  })
}

/** Throws `unsupported_operation` for a tool that only Google runs. */
function refuseOwnTool(tool: JsonObject, at: string): void {
  const own = ownToolIn(tool)
  if (own !== null)
    throw fail('unsupported_operation', {
      message: `"${at}.${own.slice(0, 64)}" is a tool that only Google runs, and this model runs elsewhere. Offer functions, or ask a Gemini model with your own provider key.`,
    })
}

/** Returns the name of a tool that Google itself runs, or null. */
export function ownToolIn(tool: JsonObject): string | null {
  return Object.keys(tool).find(name => camelOf(name) !== 'functionDeclarations' && tool[name] !== null && tool[name] !== undefined) ?? null
}

const carried: ReadonlySet<string> = new Set(['name', 'description', 'parameters', 'parametersJsonSchema'])

function hubTool(declaration: JsonObject, at: string, names: ToolNames, drop: (name: string) => void): JsonObject {
  const { name, description } = declaration
  if (typeof name !== 'string' || name === '') throw fail('bad_request', { message: `"${at}.name" must be a non-empty string.` })
  for (const key of Object.keys(declaration)) if (!carried.has(camelOf(key))) drop(`tools.functionDeclarations.${camelOf(key)}`)
  const plain = fieldOf(declaration, 'parametersJsonSchema')
  const parameters = isObject(plain)
    ? plain
    : isObject(declaration['parameters'])
      ? jsonSchemaOf(declaration['parameters'])
      : { type: 'object', properties: {} }
  return { type: 'function', function: { name: names.toUpstream(name), ...(typeof description === 'string' ? { description } : {}), parameters } }
}
