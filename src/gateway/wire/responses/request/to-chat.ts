import { fail } from '../../../../platform/errors.ts'
import { isObject, type JsonObject, objectsOf } from '../../../../platform/values/json.ts'
import { checkEffort } from '../../chat/reasoning-effort.ts'
import { isGiven, shownType, textOf } from '../json.ts'
import { ToolNames, toolsOfItems } from '../tool-names.ts'
import { readInput } from './input-items.ts'
import { noteItemFields } from './item-fields.ts'
import { hubToolChoice, hubTools, isWebSearch, webSearchName } from './tools.ts'

/** A Responses request as a hub request. */
export interface HubChat {
  readonly body: Record<string, unknown>
  /** Fields that could not be carried. */
  readonly dropped: readonly string[]
}

/** Fields that are the same in both formats. */
const same = ['model', 'temperature', 'top_p', 'stream', 'service_tier', 'user'] as const

/** Fields that are not reported as dropped. They are carried, or the reply repeats them, or they ask for the normal behaviour. */
const met = new Set([
  'model',
  'input',
  'instructions',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'text',
  'reasoning',
  'max_output_tokens',
  'temperature',
  'top_p',
  'stream',
  'service_tier',
  'user',
  'safety_identifier',
  'metadata',
  'background',
  'previous_response_id',
  'conversation',
  'prompt',
  'stream_options',
])

/** Translates a checked Responses request to the hub format. Throws `bad_request` and `unsupported_operation` that name the place. */
export function responsesToChat(request: JsonObject): HubChat {
  const names = ToolNames.of(request)
  const { messages, dropped } = readInput(request['input'], textOf(request['instructions']), names)
  const body: Record<string, unknown> = {}
  for (const name of same) if (isGiven(request[name])) body[name] = request[name]
  body['messages'] = messages
  const lost = new Set(dropped)
  noteItemFields(request, lost)
  const { stream_options: options } = request
  if (isObject(options) && options['include_obfuscation'] === true) lost.add('stream_options.include_obfuscation')
  addTools(request, names, body, lost)
  addReasoning(request['reasoning'], body, lost)
  addText(request['text'], body, lost)
  if (isGiven(request['max_output_tokens'])) body['max_tokens'] = request['max_output_tokens']
  if (isGiven(request['safety_identifier']) && !isGiven(request['user'])) body['user'] = request['safety_identifier']
  for (const name of Object.keys(request)) if (!met.has(name) && isGiven(request[name]) && !isRule(name, request[name])) lost.add(name)
  if (messages.length === 0) throw fail('bad_request', { message: '"input" must hold a message.' })
  return { body, dropped: [...lost] }
}

/** Returns whether the value of the field asks for the normal behaviour. */
function isRule(name: string, value: unknown): boolean {
  switch (name) {
    case 'store':
      return value === false
    case 'truncation':
      return value === 'disabled'
    case 'include':
      return Array.isArray(value) && value.every(entry => entry === 'reasoning.encrypted_content')
    case 'top_logprobs':
      return value === 0
    case 'background':
      return value === false
    default:
      return false
  }
}

function addTools(request: JsonObject, names: ToolNames, body: Record<string, unknown>, lost: Set<string>): void {
  const given = objectsOf(request['tools'])
  const loaded = toolsOfItems(request)
  if (given.some(isWebSearch) || loaded.some(isWebSearch)) lost.add(webSearchName)
  const offered = withoutTwins(hubTools([...given, ...loaded], names))
  const { choice, tools } = hubToolChoice(request['tool_choice'], offered, names)
  if (tools.length === 0) {
    if (choice === 'required') throw fail('bad_request', { message: '"tool_choice" demands a call, and no tool that can be called is offered.' })
    return
  }
  body['tools'] = tools
  if (choice !== undefined) body['tool_choice'] = choice
  // Parallel calls are the default, and not every server knows the field.
  if (request['parallel_tool_calls'] === false) body['parallel_tool_calls'] = false
}

/** Removes repeated tools, so that a tool that was loaded twice is offered once. */
function withoutTwins(tools: readonly JsonObject[]): readonly JsonObject[] {
  const seen = new Set<unknown>()
  return tools.filter(({ function: made }) => {
    const name = isObject(made) ? made['name'] : undefined
    return seen.has(name) ? false : seen.add(name)
  })
}

/** Reads the effort. The summary needs no hub field, because readable thinking is always returned if the model gives it. */
function addReasoning(reasoning: unknown, body: Record<string, unknown>, lost: Set<string>): void {
  if (!isGiven(reasoning)) return
  if (!isObject(reasoning)) throw fail('bad_request', { message: '"reasoning" must be an object.' })
  checkEffort(reasoning['effort'], 'reasoning.effort')
  if (isGiven(reasoning['effort'])) body['reasoning_effort'] = reasoning['effort']
  for (const name of Object.keys(reasoning))
    if (isGiven(reasoning[name]) && !['effort', 'summary', 'generate_summary'].includes(name)) lost.add(`reasoning.${name}`)
}

function addText(text: unknown, body: Record<string, unknown>, lost: Set<string>): void {
  if (!isGiven(text)) return
  if (!isObject(text)) throw fail('bad_request', { message: '"text" must be an object.' })
  const { format, ...others } = text
  if (isGiven(format)) {
    if (!isObject(format)) throw fail('bad_request', { message: '"text.format" must be an object.' })
    const { type, ...schema } = format
    if (type === 'json_schema') body['response_format'] = { type, json_schema: schema }
    else if (type === 'json_object') body['response_format'] = { type }
    else if (type !== 'text')
      throw fail('unsupported_operation', {
        message: `"text.format" of type ${shownType(type)} is not offered here; text, json_object and json_schema are.`,
      })
  }
  for (const name of Object.keys(others)) if (isGiven(others[name])) lost.add(`text.${name}`)
}
