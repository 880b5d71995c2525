import { tokensOfChars } from '../../../gateway/inference/charge/estimate.ts'
import { chatKind } from '../../../gateway/inference/kinds/chat.ts'
import { brHeader } from '../../../gateway/wire/response-headers.ts'
import { type AnyRow, Reply } from '../../../platform/endpoint.ts'
import { fail, type GatewayError } from '../../../platform/errors.ts'
import { abortSignalOf } from '../../../platform/loop/cancellation.ts'
import { pulled } from '../../../platform/loop/stream-sink.ts'
import { customTool, type Tool, type ToolContext, type ToolResult } from '../toolbox/tool.ts'
import { BrokenAnswer, refuseRelayed } from '../toolbox/tool-errors.ts'
import { type ChatArguments, chatArguments, chatBody } from './chat-arguments.ts'
import { ChatProgress } from './chat-progress.ts'
import { chatOutput, chatResult, type ReplyHeaders } from './chat-result.ts'
import { ChatAnswer, type ReadingEnd, readChatStream, whenAborted } from './chat-stream.ts'

/**
 * The tool chat calls the row of chat completions. The completion streams. Progress, the deadline and a cancel therefore work while the model
 * generates.
 */
export function chatTool(row: AnyRow): Tool {
  return customTool({
    name: 'chat',
    toolset: 'core',
    title: 'Ask a model',
    description:
      'Ask any model of this gateway and get its answer. Costs money and counts against your budgets like a call of /v1/chat/completions. Not for secrets of others: the prompt goes to a model provider.',
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true },
    row,
    inputSchema: chatArguments,
    outputSchema: chatOutput,
    run: (args, context) => ask(row, args, context),
  })
}

async function ask(row: AnyRow, args: ChatArguments, context: ToolContext): Promise<ToolResult> {
  const body = chatBody(args)
  const deadline = new AbortController()
  const stopTimer = context.clock.after(args.max_wait_s * 1000, () => deadline.abort(new DeadlineError()))
  const signal = AbortSignal.any([abortSignalOf(context.call.signal), deadline.signal])
  const answer = new ChatAnswer()
  const progress = new ChatProgress(answer, context, args.stream_progress)
  let headers: ReplyHeaders = {}
  const result = (finishReason: string | null): ToolResult => {
    if (finishReason === 'deadline' || finishReason === 'too_long') answer.usage ??= estimatedUsage(answer, body)
    return chatResult(answer, finishReason, { args, progress, headers, requestId: context.call.requestId })
  }
  progress.begin(args.model)
  try {
    const call = { ...context.call, signal, onRoute: progress.step.bind(progress) }
    const value = await firstOf(context.invoker.call(row, { body }, call), deadline.signal)
    if (value === 'aborted') return result('deadline')
    const reply = asReply(value)
    headers = reply.headers
    answer.provider = headers[brHeader.provider] ?? null
    const end = await readReply(reply, answer, signal, () => progress.piece())
    if (end === 'aborted' && !deadline.signal.aborted) throw context.call.signal.reason
    if (end === 'aborted') return result('deadline')
    if (answer.broken) throw withPartial(answer.broken, answer)
    if (end === 'too-long') return result('too_long')
    return result(answer.finishReason)
  } catch (thrown) {
    if (deadline.signal.aborted && !context.call.signal.aborted && !answer.broken) return result('deadline')
    throw thrown
  } finally {
    stopTimer()
    progress.end()
  }
}

/** The abort reason of a call that took longer than `max_wait_s`. */
class DeadlineError extends Error {
  override readonly name = 'DeadlineError'
}

/** Returns the value, or 'aborted' when the signal aborts first. A later failure of the value is ignored. */
async function firstOf<T>(value: Promise<T>, signal: AbortSignal): Promise<T | 'aborted'> {
  const aborted = whenAborted(signal)
  try {
    return await aborted.unless(value)
  } finally {
    aborted.stop()
  }
}

function asReply(value: unknown): Reply {
  return value instanceof Reply ? value : new Reply(200, {}, { kind: 'json', value })
}

/** Reads the reply into the answer, and returns how the reading ended. Throws the provider's refusal. */
async function readReply(reply: Reply, answer: ChatAnswer, signal: AbortSignal, onPiece: () => void): Promise<ReadingEnd> {
  const { body } = reply
  if (body.kind === 'stream' && reply.status < 400) return readChatStream(pulled(body.pump), answer, signal, onPiece)
  refuseRelayed(reply)
  answer.add(body.kind === 'json' ? JSON.stringify(body.value) : body.kind === 'bytes' ? Buffer.from(body.bytes).toString('utf8') : '')
  return answer.isTooLong ? 'too-long' : 'whole'
}

/** Returns the error of an answer that was broken off, with its partial text and the usage that is charged. */
function withPartial(error: GatewayError, answer: ChatAnswer): BrokenAnswer {
  const partial = { partial_text: answer.text, ...(answer.usage === null ? {} : { usage: answer.usage }) }
  return new BrokenAnswer(fail(error.errorName, { ...error.options, message: error.message, extra: { ...error.options.extra, ...partial } }))
}

/** Returns the estimated usage that the gateway charges when the provider reports none. */
function estimatedUsage(answer: ChatAnswer, body: Buffer): NonNullable<ChatAnswer['usage']> {
  const promptTokens = chatKind.parse({ bytes: body, headers: {}, query: '' }).promptTokens
  const completionTokens = tokensOfChars(answer.chars)
  return { prompt_tokens: promptTokens, completion_tokens: completionTokens, total_tokens: promptTokens + completionTokens, estimated: true }
}
