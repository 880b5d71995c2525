/** How much a model has said in the blocks of the messages format. */
import { isObject } from '../../../platform/values/json.ts'
import { outputChars } from '../../wire/output-chars.ts'

/** Characters of output in the beginning of a block. What a tool of the provider has found is input of the next step. */
export function blockChars(block: unknown): number {
  return !isObject(block) || String(block['type']).endsWith('_tool_result') ? 0 : outputChars(block)
}

/** Characters of output in a delta of a block. A citation quotes what the model has read, and is not charged. */
export function deltaChars(delta: unknown): number {
  return !isObject(delta) || delta['type'] === 'citations_delta' ? 0 : outputChars(delta)
}
