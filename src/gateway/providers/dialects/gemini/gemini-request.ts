/** Translates a chat request of the hub format to a body of Gemini's generateContent. */

import { isObject, type JsonObject, objectsOf } from '../../../../platform/values/json.ts'
import type { HubRequest, Target } from '../../dialect.ts'
import { toldForm } from '../anthropic/anthropic-format.ts'
import { demandsCall } from '../anthropic/anthropic-tools.ts'
import { isAbsent, textOf } from '../json-values.ts'
import { nameStreamOptions, nameUncarried } from '../uncarried.ts'
import { generationConfigOf, thinksByLevel } from './gemini-config.ts'
import { contentsOf } from './gemini-contents.ts'
import { geminiSchema, type ReferenceRoom, referenceRoom } from './gemini-schema.ts'

/** Fields that are translated, or that have no meaning in this format. */
const carried: ReadonlySet<string> = new Set(
  [
    ['model', 'messages', 'max_tokens', 'max_completion_tokens', 'stream', 'stream_options', 'temperature', 'top_p', 'top_k', 'stop', 'n', 'seed'],
    ['presence_penalty', 'frequency_penalty', 'tools', 'tool_choice', 'response_format', 'reasoning_effort', 'safety_settings'],
  ].flat(),
)

/** Returns the body for the target, and the names of the fields that the body cannot express. Throws `bad_request` that names the invalid part. */
export function geminiBody({ body }: HubRequest, { upstreamModel, traits }: Target): { body: Record<string, unknown>; dropped: readonly string[] } {
  const dropped = new Set<string>()
  const tools = toolsOf(body['tools'], dropped)
  // Parallel calls are the default of this API, so `parallel_tool_calls: true` needs no field.
  if (tools.length === 0 || body['parallel_tool_calls'] === true) nameUncarried({ ...body, parallel_tool_calls: null }, carried, dropped)
  else nameUncarried(body, carried, dropped)
  nameStreamOptions(body, dropped)
  const isNewer = thinksByLevel(upstreamModel)
  const { system: said, contents } = contentsOf(body['messages'], isNewer, dropped)
  if (tools.length === 0 && demandsCall(body['tool_choice'])) dropped.add('tool_choice')
  const toolConfig = tools.length === 0 ? null : toolConfigOf(body['tool_choice'], dropped)
  // The older generations refuse a form for the reply together with tools. For them, a sentence describes the form.
  const told = tools.length === 0 || isNewer ? null : toldForm(body['response_format'])
  const system = told === null ? said : [said, told].filter(text => text !== null).join('\n\n')
  const generationConfig = generationConfigOf(told === null ? body : { ...body, response_format: null }, upstreamModel, traits, dropped)
  const written = {
    contents,
    ...(system === null ? {} : { systemInstruction: { parts: [{ text: system }] } }),
    ...(tools.length === 0 ? {} : { tools }),
    ...(toolConfig === null ? {} : { toolConfig }),
    ...(Array.isArray(body['safety_settings']) ? { safetySettings: body['safety_settings'] } : {}),
    ...(Object.keys(generationConfig).length === 0 ? {} : { generationConfig }),
  }
  return { body: written, dropped: [...dropped] }
}

/** Returns all functions in one entry. An entry without a type is one of the API's own tools and is sent unchanged. */
function toolsOf(given: unknown, dropped: Set<string>): Record<string, unknown>[] {
  const own: Record<string, unknown>[] = []
  const functionDeclarations: Record<string, unknown>[] = []
  const room = referenceRoom()
  for (const tool of objectsOf(given)) {
    if (isObject(tool['cache_control'])) dropped.add('cache_control')
    if (tool['type'] === 'function') functionDeclarations.push(declarationOf(tool['function'], dropped, room))
    else if (tool['type'] === undefined) own.push(tool)
    else dropped.add(`tools.${textOf(tool['type'])}`)
  }
  return functionDeclarations.length === 0 ? own : [{ functionDeclarations }, ...own]
}

/** Returns the declaration of a function. Empty parameters are left out, because the API refuses an object without properties. */
function declarationOf(given: unknown, dropped: Set<string>, room: ReferenceRoom): Record<string, unknown> {
  const { name, description, parameters, strict } = isObject(given) ? given : ({} as JsonObject)
  if (strict === true) dropped.add('tools.strict')
  const hasParameters = isObject(parameters) && !(isObject(parameters['properties']) && Object.keys(parameters['properties']).length === 0)
  const isNone = hasParameters && parameters['type'] === 'object' && parameters['properties'] === undefined && parameters['$ref'] === undefined
  return {
    name,
    ...(typeof description === 'string' && description !== '' ? { description } : {}),
    ...(hasParameters && !isNone ? { parameters: geminiSchema(parameters, 'tools.parameters', dropped, room) } : {}),
  }
}

function toolConfigOf(choice: unknown, dropped: Set<string>): Record<string, unknown> | null {
  if (isAbsent(choice)) return null
  const modes = { auto: 'AUTO', none: 'NONE', required: 'ANY' }
  if (typeof choice === 'string' && Object.hasOwn(modes, choice)) return { functionCallingConfig: { mode: modes[choice as keyof typeof modes] } }
  const made = isObject(choice) && isObject(choice['function']) ? choice['function'] : {}
  if (typeof made['name'] === 'string') return { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: [made['name']] } }
  dropped.add('tool_choice')
  return null
}
