/** Most items of the lists of a request. No honest call reaches them; they bound what reading, weighing and translating one call costs. */
import { fail } from '../../../platform/errors.ts'

/** Messages, or items of an input. */
const messagesMax = 20_000
const toolsMax = 2000
/** Parts or blocks of one message. */
const partsMax = 5000
/** Calls of tools of one message, and of all messages. */
const messageCallsMax = 5000
const callsMax = 20_000

/** Throws `bad_request` for more messages than are taken; `name` is the field. */
export const checkMessageCount = (list: readonly unknown[], name = 'messages'): void => check(list, name, messagesMax)
/** Throws `bad_request` for more tools than are taken. */
export const checkToolCount = (list: readonly unknown[], name = 'tools'): void => check(list, name, toolsMax)
/** Throws `bad_request` for more tools than are accepted, including those in namespaces and those that were loaded later. */
export function checkCallableCount(count: number): void {
  if (count > toolsMax)
    throw fail('bad_request', { message: `The request offers ${count} tools, with those of its namespaces and tool searches; at most ${toolsMax} are taken.` })
}
/** Throws `bad_request` for more parts of a message than are taken. `at` is the field, asked for when it is needed. */
export function checkPartCount(list: readonly unknown[], at: () => string): void {
  if (list.length > partsMax) check(list, at(), partsMax)
}

/** Throws `bad_request` for more calls of tools in one message than are taken. `at` is the field, asked for when it is needed. */
export function checkMessageCalls(calls: readonly unknown[], at: () => string): void {
  if (calls.length > messageCallsMax) check(calls, at(), messageCallsMax)
}
/** Throws `bad_request` for more calls of tools in all messages together than are taken. */
export function checkCallCount(calls: number): void {
  if (calls > callsMax) throw fail('bad_request', { message: `The messages have ${calls} tool calls together; at most ${callsMax} are taken.` })
}

function check({ length }: readonly unknown[], name: string, max: number): void {
  if (length > max) throw fail('bad_request', { message: `"${name}" has ${length} items; at most ${max} are taken.` })
}
