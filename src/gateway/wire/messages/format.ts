import type { ClientFormat } from '../client-format.ts'
import { messagesErrorBody } from './error-body.ts'
import { errorFrame, pingFrame } from './frames.ts'
import { messageOf } from './reply.ts'
import { MessagesWriter } from './writer.ts'

/** Anthropic messages. */
export const messagesFormat: ClientFormat = {
  id: 'anthropic',
  whole: messageOf,
  writer: context => new MessagesWriter(context),
  relayedEnd: fault => errorFrame(fault),
  keepAlive: pingFrame,
  errorBody: messagesErrorBody,
}
