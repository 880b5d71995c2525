import type { ClientFormat } from '../client-format.ts'
import { messagesErrorBody } from './reply/error-body.ts'
import { errorFrame, pingFrame } from './reply/frames.ts'
import { messageOf } from './reply/reply.ts'
import { MessagesWriter } from './reply/writer.ts'

/** The client format of Anthropic messages. */
export const messagesFormat: ClientFormat = {
  id: 'anthropic',
  whole: messageOf,
  writer: context => new MessagesWriter(context),
  relayedEnd: fault => errorFrame(fault),
  keepAlive: pingFrame,
  errorBody: messagesErrorBody,
  nameOf: name => ownNames.get(name) ?? name,
}

/** Fields that have another name in the hub format: hub name -> own name. */
const ownNames: ReadonlyMap<string, string> = new Map([
  ['user', 'metadata.user_id'],
  ['stop', 'stop_sequences'],
  ['reasoning_effort', 'thinking'],
  ['response_format', 'output_config.format'],
  ['messages.reasoning_content', 'messages.thinking'],
  ['messages.thinking_blocks', 'messages.thinking'],
  ['parallel_tool_calls', 'tool_choice.disable_parallel_tool_use'],
])
