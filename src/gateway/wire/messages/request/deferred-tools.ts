/**
 * Deferred tools, which are declared but not shown to the model at first. The client searches them, and the result of the search contains references to the
 * tools that it found.
 */
import { isObject } from '../../../../platform/values/json.ts'
import type { ToolNames } from '../tool-names.ts'

type Fields = Readonly<Record<string, unknown>>

/** Returns the tools that the model sees: all tools of the request except deferred ones that no search result and no choice has named yet. */
export function shownTools({ tools, messages, tool_choice: choice }: Fields): unknown {
  if (!Array.isArray(tools) || !tools.some(isDeferred)) return tools
  const wanted = new Set<unknown>(resultsIn(messages).flatMap(referencesIn))
  if (isObject(choice)) wanted.add(choice['name'])
  return tools.filter((tool: unknown) => !isDeferred(tool) || wanted.has(tool['name']))
}

/** Returns the content of a tool result with a text in place of each tool reference. No other format has such references. */
export function withoutReferences(content: unknown, names: ToolNames): unknown {
  if (!Array.isArray(content)) return content
  return content.map((block: unknown) => {
    const [name] = referencesIn([block])
    return name === undefined ? block : { type: 'text', text: `The tool ${names.toUpstream(name)} can be called now.` }
  })
}

const isDeferred = (tool: unknown): tool is Fields => isObject(tool) && tool['defer_loading'] === true && (tool['type'] ?? 'custom') === 'custom'

/** Returns the contents of all tool results. */
function resultsIn(messages: unknown): readonly unknown[] {
  return listOf(messages)
    .flatMap(message => (isObject(message) ? listOf(message['content']) : []))
    .flatMap(block => (isObject(block) && block['type'] === 'tool_result' ? [block['content']] : []))
}

function referencesIn(content: unknown): readonly string[] {
  return listOf(content).flatMap(block =>
    isObject(block) && block['type'] === 'tool_reference' && typeof block['tool_name'] === 'string' ? [block['tool_name']] : [],
  )
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
