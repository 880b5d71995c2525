import { fail } from '../../../../platform/errors.ts'
import type { JsonObject } from '../../../../platform/values/json.ts'
import { textOf } from '../json.ts'
import { type ToolOutput, toolOutput } from './parts.ts'

/** True for an item in which the assistant calls a tool of the client. */
export function isCall(type: unknown): boolean {
  return type === 'function_call' || type === 'custom_tool_call' || type === 'tool_search_call'
}

/** True for an item that answers such a call. */
export function isOutput(type: unknown): boolean {
  return type === 'function_call_output' || type === 'custom_tool_call_output' || type === 'tool_search_output'
}

/** The outputs of a conversation's calls, in their order. The order matters, because some models use the same call ids in every step. */
export class CallOutputs {
  /** The outputs by call id, with the index of the output that the next call takes. */
  readonly #outputs = new Map<string, { readonly list: ToolOutput[]; next: number }>()
  readonly #callsLeft = new Map<string, number>()

  constructor(items: readonly JsonObject[]) {
    for (const { type, call_id: id } of items) if (isCall(type) && typeof id === 'string') this.#callsLeft.set(id, (this.#callsLeft.get(id) ?? 0) + 1)
  }

  /** Adds an output. Throws `bad_request` that names the place, for the output of a call that is not in the input. */
  add(item: JsonObject, at: string): void {
    const id = textOf(item['call_id'])
    if (id === null || !this.#callsLeft.has(id)) throw fail('bad_request', { message: `"${at}" is the output of a call (call_id) that is not in the input.` })
    const isSearch = item['type'] === 'tool_search_output'
    const output = isSearch ? { text: JSON.stringify({ tools: item['tools'] ?? [] }), shown: [] } : toolOutput(item['output'], `${at}.output`)
    const outputs = this.#outputs.get(id)
    if (outputs === undefined) this.#outputs.set(id, { list: [output], next: 0 })
    else outputs.list.push(output)
  }

  /** Returns the output of the next call of that id. If the last call has several outputs, the last one counts. Throws `bad_request` if there is no output. */
  take(id: string, at: string): ToolOutput {
    const outputs = this.#outputs.get(id) ?? { list: [], next: 0 }
    const callsLeft = (this.#callsLeft.get(id) ?? 1) - 1
    this.#callsLeft.set(id, callsLeft)
    const output = outputs.list[callsLeft === 0 ? Math.max(outputs.next, outputs.list.length - 1) : outputs.next]
    if (output === undefined) throw fail('bad_request', { message: `"${at}" is a call without its output in the input.` })
    outputs.next++
    return output
  }
}
