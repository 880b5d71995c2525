import { isObject, type JsonObject, objectsOf } from '../../../../platform/values/json.ts'
import type { HubRequest, Target } from '../../dialect.ts'
import { demandsCall } from '../anthropic/anthropic-tools.ts'
import { isAbsent, textOf } from '../json-values.ts'
import { asksForNothing, nameUncarried } from '../uncarried.ts'
import { inputItems } from './responses-input.ts'

/** Fields that have the same name and meaning in both formats. */
const same = [
  'temperature',
  'top_p',
  'user',
  'metadata',
  'service_tier',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'safety_identifier',
  'moderation',
] as const
/** Fields that are carried under another name or in another shape. */
const carriedOtherwise = [
  'model',
  'messages',
  'stream',
  'stream_options',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'reasoning_effort',
  'response_format',
  'verbosity',
  'max_tokens',
  'max_completion_tokens',
] as const
const carried: ReadonlySet<string> = new Set([...same, ...carriedOtherwise])

/** Translates a hub chat request to the Responses API. The provider stores nothing. `dropped` names the fields that the API cannot express. */
export function responsesBody(request: HubRequest, { upstreamModel, traits }: Target): { readonly body: JsonObject; readonly dropped: readonly string[] } {
  const { body: given, stream } = request
  const dropped = new Set<string>()
  const body: Record<string, unknown> = { model: upstreamModel, input: inputItems(given['messages'], dropped), store: false }
  for (const name of same) if (!isAbsent(given[name])) body[name] = given[name]
  if (stream) body['stream'] = true
  if (stream) addStreamOptions(given['stream_options'], body, dropped)
  // A reasoning model returns its encrypted thinking, so that the client can send it with the next turn.
  if (traits.reasoning) body['include'] = ['reasoning.encrypted_content']
  addTools(given, body, dropped)
  if (!isAbsent(given['reasoning_effort'])) body['reasoning'] = { effort: effortOf(given['reasoning_effort']) }
  const text = textOptions(given)
  if (text !== null) body['text'] = text
  const ceilings = [given['max_tokens'], given['max_completion_tokens']].filter(value => typeof value === 'number')
  if (ceilings.length > 0) body['max_output_tokens'] = Math.min(...ceilings)
  nameUncarried(given, carried, dropped)
  return { body, dropped: [...dropped] }
}

/** Reads the stream options. The usage option has no counterpart, because every stream of this API reports usage at the end. */
function addStreamOptions(options: unknown, body: Record<string, unknown>, dropped: Set<string>): void {
  if (!isObject(options)) return
  const { include_usage: _told, include_obfuscation: obfuscation, ...others } = options
  if (!isAbsent(obfuscation)) body['stream_options'] = { include_obfuscation: obfuscation }
  for (const [name, value] of Object.entries(others)) if (!asksForNothing(name, value)) dropped.add(`stream_options.${name}`)
}

/** Returns the effort. This API has no `minimal`. */
export function effortOf(effort: unknown): unknown {
  return effort === 'minimal' ? 'low' : effort
}

function textOptions({ response_format: format, verbosity }: JsonObject): JsonObject | null {
  const text: Record<string, unknown> = {}
  if (isObject(format)) {
    const { type, json_schema: schema } = format
    text['format'] = type === 'json_schema' && isObject(schema) ? { type, ...schema } : { type }
  }
  if (!isAbsent(verbosity)) text['verbosity'] = verbosity
  return Object.keys(text).length === 0 ? null : text
}

function addTools(given: JsonObject, body: Record<string, unknown>, dropped: Set<string>): void {
  const tools = objectsOf(given['tools']).flatMap(tool => responsesTool(tool, dropped))
  if (tools.length === 0) {
    if (demandsCall(given['tool_choice'])) dropped.add('tool_choice')
    return
  }
  body['tools'] = tools
  const choice = given['tool_choice']
  if (typeof choice === 'string') body['tool_choice'] = choice
  else if (isObject(choice)) body['tool_choice'] = responsesChoice(choice)
  if (!isAbsent(given['parallel_tool_calls'])) body['parallel_tool_calls'] = given['parallel_tool_calls']
}

/** Translates a tool. `strict` is always set, because its default differs: false in chat, and true in this API. */
function responsesTool(tool: JsonObject, dropped: Set<string>): readonly JsonObject[] {
  if (isObject(tool['cache_control'])) dropped.add('cache_control')
  const { function: made, custom } = tool
  if (isObject(made)) {
    const about = isAbsent(made['description']) ? {} : { description: made['description'] }
    return [
      { type: 'function', name: made['name'], ...about, parameters: made['parameters'] ?? { type: 'object', properties: {} }, strict: made['strict'] === true },
    ]
  }
  if (isObject(custom)) {
    const { format, ...rest } = custom
    const grammar = isObject(format) && isObject(format['grammar']) ? { type: 'grammar', ...format['grammar'] } : format
    return [{ type: 'custom', ...rest, ...(isAbsent(grammar) ? {} : { format: grammar }) }]
  }
  dropped.add(`tools.${textOf(tool['type']) || 'unknown'}`)
  return []
}

function responsesChoice(choice: JsonObject): JsonObject {
  const { function: made, custom, allowed_tools: allowed } = choice
  if (isObject(made)) return { type: 'function', name: made['name'] }
  if (isObject(custom)) return { type: 'custom', name: custom['name'] }
  if (isObject(allowed)) return { type: 'allowed_tools', mode: allowed['mode'], tools: objectsOf(allowed['tools']).map(responsesChoice) }
  return choice
}
