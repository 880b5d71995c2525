/** Counts the output of a model in the blocks of the messages format. */
import { isObject } from '../../../platform/values/json.ts'
import { outputChars } from '../../wire/output-chars.ts'

/**
 * Returns the number of output characters at the start of a block. Results of a provider's tool do not count, because they are input of the next
 * step.
 */
export function blockChars(block: unknown): number {
  return !isObject(block) || String(block['type']).endsWith('_tool_result') ? 0 : outputChars(block)
}

/** Returns the number of output characters in a delta of a block. A citation quotes what the model has read and is not charged. */
export function deltaChars(delta: unknown): number {
  return !isObject(delta) || delta['type'] === 'citations_delta' ? 0 : outputChars(delta)
}
