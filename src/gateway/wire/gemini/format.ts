import type { ClientFormat } from '../client-format.ts'
import { geminiErrorBody } from './reply/error-body.ts'
import { geminiReply } from './reply/reply.ts'
import { failFrame, GeminiWriter, keepAlive } from './reply/writer.ts'

/** The client format of Google's generateContent. Streams are written as server-sent events; `stream/array-stream.ts` of inference makes the other form of them. */
export const geminiFormat: ClientFormat = {
  id: 'gemini',
  whole: geminiReply,
  writer: context => new GeminiWriter(context),
  relayedEnd: (fault, usage, context) => failFrame(fault, usage, context),
  keepAlive,
  errorBody: (body, status) => geminiErrorBody(body, status),
  nameOf: name => ownNames.get(name) ?? name,
}

/** Fields that have another name in the hub format: hub name -> own name. */
const ownNames: ReadonlyMap<string, string> = new Map([
  ['temperature', 'generationConfig.temperature'],
  ['top_p', 'generationConfig.topP'],
  ['top_k', 'generationConfig.topK'],
  ['n', 'generationConfig.candidateCount'],
  ['max_tokens', 'generationConfig.maxOutputTokens'],
  ['presence_penalty', 'generationConfig.presencePenalty'],
  ['frequency_penalty', 'generationConfig.frequencyPenalty'],
  ['seed', 'generationConfig.seed'],
  ['stop', 'generationConfig.stopSequences'],
  ['response_format', 'generationConfig.responseSchema'],
  ['reasoning_effort', 'generationConfig.thinkingConfig'],
  ['tool_choice', 'toolConfig.functionCallingConfig'],
  ['messages.reasoning_content', 'contents.parts.thoughtSignature'],
  ['messages.thinking_blocks', 'contents.parts.thoughtSignature'],
])
