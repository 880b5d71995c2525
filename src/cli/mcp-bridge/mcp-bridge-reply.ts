import { createParser } from 'eventsource-parser'
import { errorOf } from '../../agents/toolkit/brigade-error.ts'
import { type Called, CommandError, commandErrorOf } from '../command-error.ts'
import { fieldAt, isFields, jsonOf } from './mcp-bridge-message.ts'

/** Receives the messages of a reply. The stream is read only as fast as this function accepts messages. */
export type Emit = (json: string) => Promise<void>

/**
 * Passes the gateway's reply to a request on unchanged. The reply is one JSON message or an event stream of several. Resolves to the answer to `id`,
 * or to undefined when the reply ended without one. Throws CommandError for a refusal that is not JSON-RPC. Also throws errors of reading.
 */
export async function carryReply(reply: Response, id: string | number | null, emit: Emit, called: Called): Promise<unknown> {
  if ((reply.headers.get('content-type') ?? '').startsWith('text/event-stream')) return carryStream(reply, id, emit)
  const text = await reply.clone().text()
  const value = jsonOf(text)
  if (isFields(value) && value['jsonrpc'] === '2.0') {
    // A server that could not parse the request answers without an id, but the client waits for an answer with its id.
    const answer = value['id'] === null && id !== null ? { ...value, id } : value
    await emit(answer === value ? text : JSON.stringify(answer))
    return fieldAt(answer, 'id') === id ? answer : undefined
  }
  if (!reply.ok) throw commandErrorOf(await errorOf(reply), called)
  return undefined
}

async function carryStream(reply: Response, id: string | number | null, emit: Emit): Promise<unknown> {
  const waiting: string[] = []
  const parser = createParser({ onEvent: ({ data }) => waiting.push(data) })
  const decoder = new TextDecoder()
  let answer: unknown
  for await (const chunk of reply.body ?? []) {
    parser.feed(decoder.decode(chunk, { stream: true }))
    for (const data of waiting.splice(0)) {
      // Events without data only keep the connection open.
      if (data === '') continue
      await emit(data)
      const value = jsonOf(data)
      if (isFields(value) && value['id'] === id && !('method' in value)) answer = value
    }
  }
  return answer
}

/** The JSON-RPC error code for a request that did not reach the server, in the range that JSON-RPC leaves to implementations. */
const transportErrorCode = -32000

/** Returns the JSON-RPC error for a request that failed before a reply arrived. */
export function transportError(id: string | number | null, thrown: unknown): string {
  const { message, data } = described(thrown)
  return JSON.stringify({ jsonrpc: '2.0', id, error: { code: transportErrorCode, message, data } })
}

/** Returns a description of a request that failed before a reply arrived, for people and programs. */
export function described(thrown: unknown): { readonly message: string; readonly data: Readonly<Record<string, unknown>> } {
  if (thrown instanceof CommandError) return { message: sentence(thrown.message), data: { ...thrown.evidence, code: thrown.code, status: thrown.status } }
  return {
    message: 'The connection to the gateway broke before it had answered. The request may have been carried out. Try again.',
    data: { code: 'connection_lost', status: null },
  }
}

function sentence(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`
}
