/** Bounds of the lists in a request. No honest call reaches them. They bound the cost of reading, estimating and translating one call. */
import { fail } from '../../platform/errors.ts'

/** Maximum number of messages, or items of an input. */
const messagesMax = 20_000
const toolsMax = 2000
/** Maximum number of parts or blocks of one message. */
const partsMax = 5000
/** Maximum number of tool calls of one message, and of all messages together. */
const messageCallsMax = 5000
const callsMax = 20_000

/** Throws `bad_request` for too many messages. `name` is the field. */
export const checkMessageCount = (list: readonly unknown[], name = 'messages'): void => check(list, name, messagesMax)
/** Throws `bad_request` for too many tools. `name` is the field. */
export const checkToolCount = (list: readonly unknown[], name = 'tools'): void => check(list, name, toolsMax)
/** Throws `bad_request` for too many tools, including those in namespaces and those that were loaded later. */
export function checkCallableCount(count: number): void {
  if (count > toolsMax)
    throw fail('bad_request', { message: `The request offers ${count} tools, with those of its namespaces and tool searches; at most ${toolsMax} are taken.` })
}
/** Throws `bad_request` for too many parts of a message. `at` returns the name of the field and is called only for the error. */
export function checkPartCount(list: readonly unknown[], at: () => string): void {
  if (list.length > partsMax) check(list, at(), partsMax)
}

/** Throws `bad_request` for too many tool calls in one message. `at` returns the name of the field and is called only for the error. */
export function checkMessageCalls(calls: readonly unknown[], at: () => string): void {
  if (calls.length > messageCallsMax) check(calls, at(), messageCallsMax)
}
/** Throws `bad_request` for too many tool calls in all messages together. */
export function checkCallCount(calls: number): void {
  if (calls > callsMax) throw fail('bad_request', { message: `The messages have ${calls} tool calls together; at most ${callsMax} are taken.` })
}

function check({ length }: readonly unknown[], name: string, max: number): void {
  if (length > max) throw fail('bad_request', { message: `"${name}" has ${length} items; at most ${max} are taken.` })
}
