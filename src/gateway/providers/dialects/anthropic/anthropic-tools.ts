/** Functions of the hub format as tools of the messages format. */

import { isObject, type JsonObject, objectsOf } from '../../../../platform/values/json.ts'
import { isAbsent, textOf } from '../json-values.ts'
import { withCacheControl } from './anthropic-blocks.ts'

export interface Tools {
  /** Empty when there are no tools. */
  readonly tools: readonly Record<string, unknown>[]
  readonly choice: Record<string, unknown> | undefined
  /** A function must be called. */
  readonly forces: boolean
}

/**
 * Tools and the choice among them. Functions become tools; an entry of another type that has a name is one of the format's own server tools
 * and goes on as it is. Functions that were called earlier and are not offered any more are declared, and no call is allowed, because
 * the format wants to know what its history speaks of.
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

/** Whether a choice wants a call, which nothing can follow where no tool is offered. */
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
