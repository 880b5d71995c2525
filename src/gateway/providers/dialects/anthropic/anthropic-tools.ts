/** Translates functions of the hub format to tools of the messages format. */

import { isObject, type JsonObject, objectsOf } from '../../../../platform/values/json.ts'
import { isAbsent, textOf } from '../json-values.ts'
import { withCacheControl } from './anthropic-blocks.ts'

export interface Tools {
  /** The tools. The list is empty when there are none. */
  readonly tools: readonly Record<string, unknown>[]
  readonly choice: Record<string, unknown> | undefined
  /** True when the request forces a function call. */
  readonly forces: boolean
}

/**
 * Returns the tools and the tool choice. Functions become tools. A named entry of another type is one of the format's own server tools and is sent
 * unchanged. The format requires a declaration for every call in its history. Functions that were called earlier and are no longer offered are
 * therefore declared, with choice "none".
 */
export function toolsOf(body: JsonObject, calledNames: readonly string[], dropped: Set<string>): Tools {
  const tools = objectsOf(body['tools']).flatMap(tool => toolOf(tool, dropped))
  if (tools.length > 0) {
    const choice = choiceOf(body, dropped)
    return { tools, choice, forces: choice?.['type'] === 'any' || choice?.['type'] === 'tool' }
  }
  if (demandsCall(body['tool_choice'])) dropped.add('tool_choice')
  if (calledNames.length === 0) return { tools, choice: undefined, forces: false }
  return { tools: calledNames.map(name => ({ name, input_schema: { type: 'object' } })), choice: { type: 'none' }, forces: false }
}

/** Returns whether a choice forces a call. No call is possible when no tool is offered. */
export function demandsCall(choice: unknown): boolean {
  return !isAbsent(choice) && choice !== 'auto' && choice !== 'none'
}

function toolOf(tool: JsonObject, dropped: Set<string>): Record<string, unknown>[] {
  if (tool['type'] !== 'function') {
    if (typeof tool['type'] === 'string' && typeof tool['name'] === 'string') return [tool]
    dropped.add(`tools.${textOf(tool['type'])}`)
    return []
  }
  const [made = {}] = objectsOf([tool['function']])
  const { name, description, parameters, strict } = made
  const schema = isObject(parameters) ? parameters : {}
  const written = {
    name,
    ...(typeof description === 'string' && description !== '' ? { description } : {}),
    input_schema: schema['type'] === undefined ? { type: 'object', ...schema } : schema,
    ...(strict === true ? { strict } : {}),
  }
  return [withCacheControl(written, tool['cache_control'] === undefined ? made : tool)]
}

function choiceOf(body: JsonObject, dropped: Set<string>): Record<string, unknown> | undefined {
  const choice = chosen(body['tool_choice'], dropped)
  if (body['parallel_tool_calls'] !== false || choice?.['type'] === 'none') return choice
  return { ...(choice ?? { type: 'auto' }), disable_parallel_tool_use: true }
}

function chosen(choice: unknown, dropped: Set<string>): Record<string, unknown> | undefined {
  if (isAbsent(choice)) return undefined
  if (choice === 'auto' || choice === 'none') return { type: choice }
  if (choice === 'required') return { type: 'any' }
  const [made] = isObject(choice) ? objectsOf([choice['function']]) : []
  if (typeof made?.['name'] === 'string') return { type: 'tool', name: made['name'] }
  dropped.add('tool_choice')
  return undefined
}
