import { isObject, objectsOf } from '../../../platform/values/json.ts'
import type { ClientFormat } from '../client-format.ts'
import { EventFrames } from './reply/event-frames.ts'
import { itemsOf, makerOf } from './reply/output.ts'
import { withBill } from './reply/relayed-bill.ts'
import { endOf, responseError, responseObject } from './reply/response-object.ts'
import { keepAlive, ResponsesWriter } from './reply/writer.ts'

/**
 * The client format of OpenAI Responses. When a budget or a revocation cuts a stream, its last event is `response.failed` with a code after which clients
 * do not retry.
 */
export const responsesFormat: ClientFormat = {
  id: 'openai-responses',

  whole(reply, usage, context) {
    const choice = objectsOf(reply['choices'])[0] ?? {}
    const end = endOf(choice['finish_reason'])
    const maker = makerOf(context)
    const items = isObject(choice['message']) ? itemsOf(choice['message'], end.status === 'completed' ? 'completed' : 'incomplete', maker) : []
    return responseObject(context.newId('resp_'), context, end, items, usage)
  },

  writer: context => new ResponsesWriter(context),

  relayedEnd(fault, usage, context, events) {
    const failed = { status: 'failed', error: responseError(fault) } as const
    return new EventFrames(events).frame('response.failed', { response: responseObject(context.newId('resp_'), context, failed, [], usage) })
  },

  withBill: (events, usage, context) => withBill(events, usage, context.bill(usage)),

  keepAlive,

  nameOf(name, request) {
    if (name === 'user' && (request['user'] === undefined || request['user'] === null)) return 'safety_identifier'
    return ownNames.get(name) ?? name
  },
}

/** Fields that have another name in the hub format: hub name -> own name. */
const ownNames: ReadonlyMap<string, string> = new Map([
  ['reasoning_effort', 'reasoning.effort'],
  ['response_format', 'text.format'],
  ['verbosity', 'text.verbosity'],
  ['max_tokens', 'max_output_tokens'],
  ['messages.content.image_url.detail', 'input.content.detail'],
  ['messages.reasoning_content', 'input.reasoning'],
  ['messages.thinking_blocks', 'input.reasoning'],
])
