import { z } from 'zod'
import { tokensOfChars } from '../gateway/inference/estimate.ts'
import { chatKind } from '../gateway/inference/kinds/chat.ts'
import { brHeader } from '../gateway/wire/response-headers.ts'
import { abortSignalOf } from '../platform/cancellation.ts'
import { type AnyRow, Reply } from '../platform/endpoint.ts'
import { fail, type GatewayError } from '../platform/errors.ts'
import { ChatAnswer, readChatStream, whenAborted } from './chat-stream.ts'
import { customTool, type Tool, type ToolContext, type ToolResult } from './tool.ts'
import { BrokenAnswer, RelayedRefusal } from './tool-errors.ts'

/** Clients give up on a tool after about 60 s; an answer cut short at 50 s still reaches them. */
const waitDefaultSeconds = 50
const waitMaxSeconds = 600
/** At most one progress notification in this time. */
const progressEveryMs = 1000

const message = z.object({ role: z.enum(['system', 'developer', 'user', 'assistant']), content: z.string() })

const inputSchema = z.object({
  prompt: z.string().min(1).optional().describe('The question. Give either prompt or messages.'),
  messages: z.array(message).min(1).max(500).optional().describe('A conversation, oldest first. Give either prompt or messages.'),
  system: z.string().optional().describe('System prompt, put before the messages.'),
  model: z.string().min(1).default('auto').describe('Model id from models_list. auto lets the gateway choose.'),
  max_tokens: z.number().int().min(1).optional().describe('Ceiling for reasoning and answer together.'),
  temperature: z.number().min(0).max(2).optional(),
  reasoning_effort: z
    .enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'])
    .optional()
    .describe('For reasoning models; accepted values differ per model.'),
  json_schema: z.record(z.string(), z.unknown()).optional().describe('JSON Schema that the answer must satisfy.'),
  optimize: z.enum(['price', 'latency', 'uptime', 'throughput', 'quality', 'auto']).optional().describe('What to prefer among the routes of the model.'),
  provider: z.string().min(1).optional().describe('Pin one provider id.'),
  data_policy: z.enum(['india_only']).optional().describe('india_only: nothing leaves India; fails when no such route exists.'),
  exclude: z.array(z.string().min(1)).max(50).optional().describe('Providers, or provider/model, never to be used.'),
  fallbacks: z.array(z.string().min(1)).max(10).optional().describe('Models to try in order when the first fails.'),
  max_wait_s: z
    .number()
    .int()
    .min(1)
    .max(waitMaxSeconds)
    .default(waitDefaultSeconds)
    .describe('After so many seconds the answer so far is returned with finish_reason "deadline".'),
})

type ChatArgs = z.output<typeof inputSchema>

const outputSchema = z.object({
  text: z.string().describe('The answer.'),
  reasoning: z.string().optional().describe("The model's thinking, when the provider shows it."),
  model: z.string().describe('The model that answered.'),
  provider: z.string().nullable(),
  finish_reason: z.string().nullable().describe('stop, length, content_filter, or deadline when max_wait_s ran out.'),
  usage: z
    .object({ prompt_tokens: z.number(), completion_tokens: z.number(), total_tokens: z.number() })
    .nullable()
    .describe('estimated: the answer was cut short before the provider said.'),
  cost_inr: z.number().nullable().describe('Rupees, when known.'),
  budget_remaining_inr: z.number().optional().describe("Rupees that the agent's tightest budget had left when the answer began; absent without one."),
  request_id: z.string(),
})

/** chat: the chat completions row as a tool. It streams inside, so that progress, a deadline and a cancel work while the model speaks. */
export function chatTool(row: AnyRow): Tool {
  return customTool({
    name: 'chat',
    toolset: 'core',
    title: 'Ask a model',
    description:
      'Ask any model of this gateway and get its answer. Costs money and counts against your budgets like a call of /v1/chat/completions. Not for secrets of others: the prompt goes to a model provider.',
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true },
    row,
    inputSchema,
    outputSchema,
    run: (args, context) => ask(row, args, context),
  })
}

async function ask(row: AnyRow, args: ChatArgs, context: ToolContext): Promise<ToolResult> {
  const body = Buffer.from(JSON.stringify(requestBody(args)))
  const deadline = new AbortController()
  const stopTimer = context.clock.after(args.max_wait_s * 1000, () => deadline.abort(new DeadlineError()))
  const signal = AbortSignal.any([abortSignalOf(context.call.signal), deadline.signal])
  const answer = new ChatAnswer()
  const startedMs = context.clock.monotonicMs()
  context.report?.({ progress: 0, message: `asking ${args.model}` })
  try {
    const value = await firstOf(context.invoke(row, { body }, { ...context.call, signal }), deadline.signal)
    if (value === 'aborted') return deadlineResult(answer, body, args, context)
    const reply = asReply(value)
    answer.budgetRemainingInr = numberIn(reply.headers[brHeader.budgetRemainingInr])
    answer.provider = reply.headers['x-br-provider'] ?? null
    const isWhole = await readReply(reply, answer, signal, progressReporter(answer, context, startedMs))
    if (!isWhole && !deadline.signal.aborted) throw context.call.signal.reason
    if (!isWhole) return deadlineResult(answer, body, args, context)
    if (answer.broken) throw withPartial(answer.broken, answer)
    return toResult(answer, args, context, answer.finishReason)
  } catch (thrown) {
    if (deadline.signal.aborted && !context.call.signal.aborted && !answer.broken) return deadlineResult(answer, body, args, context)
    throw thrown
  } finally {
    stopTimer()
  }
}

/** The abort reason of a call that took longer than `max_wait_s`. */
class DeadlineError extends Error {
  override readonly name = 'DeadlineError'
}

/** The value, or 'aborted' when the deadline comes first; the late value's failure is then nobody's. */
async function firstOf<T>(value: Promise<T>, signal: AbortSignal): Promise<T | 'aborted'> {
  const aborted = whenAborted(signal)
  value.catch(() => undefined)
  try {
    return await Promise.race([value, aborted.promise])
  } finally {
    aborted.stop()
  }
}

function requestBody(args: ChatArgs): Record<string, unknown> {
  const { prompt, messages, system, json_schema: schema, max_wait_s: _wait, ...fields } = args
  if ((prompt === undefined) === (messages === undefined)) throw fail('bad_request', { message: 'Give either prompt or messages.' })
  return {
    ...fields,
    messages: [...(system === undefined ? [] : [{ role: 'system', content: system }]), ...(messages ?? [{ role: 'user', content: prompt }])],
    ...(schema === undefined ? {} : { response_format: { type: 'json_schema', json_schema: { name: 'answer', schema } } }),
    stream: true,
  }
}

const numberIn = (header: string | undefined): number | null => (header === undefined ? null : Number(header))

function asReply(value: unknown): Reply {
  return value instanceof Reply ? value : new Reply(200, {}, { kind: 'json', value })
}

/** True when the answer is complete; false when the signal ended it. Throws what the provider refused. */
async function readReply(reply: Reply, answer: ChatAnswer, signal: AbortSignal, onPiece: () => void): Promise<boolean> {
  const { body } = reply
  if (body.kind === 'stream' && reply.status < 400) return readChatStream(body.chunks, answer, signal, onPiece)
  const text = body.kind === 'json' ? JSON.stringify(body.value) : body.kind === 'bytes' ? Buffer.from(body.bytes).toString('utf8') : ''
  if (reply.status >= 400) throw refusedByProvider(reply.status, text)
  answer.add(text)
  return true
}

const envelope = z.looseObject({ error: z.looseObject({ message: z.string(), code: z.string().optional() }) })

/** A 4xx of the provider, which the gateway relays as it is. */
function refusedByProvider(status: number, text: string): RelayedRefusal {
  const { error } = envelope.parse(JSON.parse(text))
  return new RelayedRefusal(error.code ?? 'upstream_client_error', status, error.message)
}

function progressReporter(answer: ChatAnswer, context: ToolContext, startedMs: number): () => void {
  let saidMs = startedMs
  let saidPieces = 0
  return () => {
    const nowMs = context.clock.monotonicMs()
    if (!context.report || nowMs - saidMs < progressEveryMs || answer.pieces === saidPieces) return
    saidMs = nowMs
    saidPieces = answer.pieces
    context.report({
      progress: answer.pieces,
      message: `${answer.pieces} pieces from ${answer.provider ?? 'the provider'}, ${((nowMs - startedMs) / 1000).toFixed(1)} s`,
    })
  }
}

/** The end of an answer that was broken off, with what came of it and what that is charged as. */
function withPartial(error: GatewayError, answer: ChatAnswer): BrokenAnswer {
  const partial = { partial_text: answer.text, ...(answer.usage === null ? {} : { usage: answer.usage }) }
  return new BrokenAnswer(fail(error.errorName, { ...error.options, message: error.message, extra: { ...error.options.extra, ...partial } }))
}

/** The answer so far. Its usage is the estimate that the gateway meters when the provider has not said. */
function deadlineResult(answer: ChatAnswer, body: Buffer, args: ChatArgs, context: ToolContext): ToolResult {
  const promptTokens = chatKind.parse({ bytes: body, headers: {}, query: '' }).promptTokens
  const completionTokens = tokensOfChars(answer.text.length + answer.reasoning.length)
  answer.usage ??= { prompt_tokens: promptTokens, completion_tokens: completionTokens, total_tokens: promptTokens + completionTokens, estimated: true }
  return toResult(answer, args, context, 'deadline')
}

function toResult(answer: ChatAnswer, args: ChatArgs, context: ToolContext, finishReason: string | null): ToolResult {
  const note =
    finishReason === 'deadline'
      ? `\n[cut short after ${args.max_wait_s} s; ask for less, or give a larger max_wait_s]`
      : finishReason === 'length'
        ? '\n[cut short by max_tokens]'
        : ''
  return {
    text: `${answer.text}${note}`,
    structured: {
      text: answer.text,
      ...(answer.reasoning === '' ? {} : { reasoning: answer.reasoning }),
      model: answer.model ?? args.model,
      provider: answer.provider,
      finish_reason: finishReason,
      usage:
        answer.usage === null
          ? null
          : {
              prompt_tokens: answer.usage.prompt_tokens,
              completion_tokens: answer.usage.completion_tokens,
              total_tokens: answer.usage.total_tokens,
              ...(answer.usage['estimated'] === true ? { estimated: true } : {}),
            },
      cost_inr: answer.costInr,
      ...(answer.budgetRemainingInr === null ? {} : { budget_remaining_inr: answer.budgetRemainingInr }),
      request_id: context.call.requestId,
    },
  }
}
