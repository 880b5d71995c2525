/** Removes Gemini's signatures from the ids of calls, for servers that do not accept long ids. */
import { isObject } from '../../../platform/values/json.ts'
import { isSignedId, readCallId } from './gemini/gemini-signature.ts'

type Fields = Readonly<Record<string, unknown>>

/** Returns the messages without the signatures in the ids of their calls and results. Returns null when the ids contain none. */
export function withoutSignedIds(messages: unknown): readonly unknown[] | null {
  if (!Array.isArray(messages) || !messages.some(isSigned)) return null
  return messages.map((message: unknown) => (isSigned(message) ? plain(message) : message))
}

function isSigned(message: unknown): message is Fields {
  if (!isObject(message)) return false
  if (isSignedId(message['tool_call_id'])) return true
  const calls = message['tool_calls']
  return Array.isArray(calls) && calls.some((call: unknown) => isObject(call) && isSignedId(call['id']))
}

function plain(message: Fields): Fields {
  const { tool_calls: calls, tool_call_id: id } = message
  return {
    ...message,
    ...(Array.isArray(calls)
      ? { tool_calls: calls.map((call: unknown) => (isObject(call) && isSignedId(call['id']) ? { ...call, id: readCallId(call['id']).id } : call)) }
      : {}),
    ...(isSignedId(id) ? { tool_call_id: readCallId(id).id } : {}),
  }
}
