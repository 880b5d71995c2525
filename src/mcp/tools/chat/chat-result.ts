/** Makes the answer of the chat tool from the reply's stream, its headers and the routes that were tried. */
import { z } from 'zod'
import { JsonTexts } from '../../../gateway/wire/json/json-texts.ts'
import { brHeader } from '../../../gateway/wire/response-headers.ts'
import type { ToolResult } from '../toolbox/tool.ts'
import type { ChatArguments } from './chat-arguments.ts'
import type { ChatProgress } from './chat-progress.ts'
import { type ChatAnswer, chatAnswerMaxBytes } from './chat-stream.ts'

/** The structured content of a chat. */
export const chatOutput = z.object({
  text: z.string().describe('The answer.'),
  json: z.unknown().optional().describe('The answer as data, when json_schema was given and the answer is JSON.'),
  reasoning: z.string().optional().describe("The model's thinking, when the provider shows it."),
  model: z.string().describe('The model that answered.'),
  provider: z.string().nullable(),
  finish_reason: z
    .string()
    .nullable()
    .describe('stop, length, content_filter, deadline when max_wait_s ran out, or too_long when the answer is longer than this tool returns.'),
  usage: z
    .object({ prompt_tokens: z.number(), completion_tokens: z.number(), total_tokens: z.number() })
    .nullable()
    .describe('estimated: the answer was cut short before the provider said.'),
  cost_inr: z.number().nullable().describe('Rupees, when known.'),
  byok: z.boolean().nullable().describe("Served on the organisation's own provider key: nothing is debited. Null when no route was dialed."),
  route: z
    .object({
      preset: z.string().optional().describe('The auto preset that chose the model.'),
      capability: z.string().optional().describe('What the prompt was taken for.'),
      reason: z.string().optional().describe('Why that model.'),
      residency: z.enum(['india', 'global']).nullable(),
      attempts: z.array(
        z.object({ provider: z.string(), model: z.string(), outcome: z.enum(['answered', 'failed', 'unanswered']), why: z.string().optional() }),
      ),
    })
    .describe('Where the call went.'),
  dropped_params: z.array(z.string()).optional().describe('Arguments that the provider has no word for.'),
  budget_remaining_inr: z.number().optional().describe("Rupees that the agent's tightest budget had left when the answer began; absent without one."),
  request_id: z.string(),
})

/** Headers of the reply that carried the answer. */
export type ReplyHeaders = Readonly<Record<string, string>>

/** Returns the result of a chat that ended with `finishReason`. */
export function chatResult(
  answer: ChatAnswer,
  finishReason: string | null,
  { args, progress, headers, requestId }: { args: ChatArguments; progress: ChatProgress; headers: ReplyHeaders; requestId: string },
): ToolResult {
  const dropped = headers[brHeader.droppedParams]
  const left = headers[brHeader.budgetRemainingInr]
  return {
    text: textOf(answer, finishReason, args, dropped),
    structured: {
      text: answer.text,
      ...(args.json_schema === undefined ? {} : jsonIn(answer.text)),
      ...(answer.reasoning === '' ? {} : { reasoning: answer.reasoning }),
      model: progress.route?.model ?? answer.model ?? args.model,
      provider: answer.provider ?? progress.route?.provider ?? null,
      finish_reason: finishReason,
      usage: answer.usage === null ? null : usageOf(answer.usage),
      cost_inr: answer.costInr,
      byok: progress.route?.byok ?? null,
      route: routeOf(progress, headers),
      ...(dropped === undefined ? {} : { dropped_params: dropped.split(',') }),
      ...(left === undefined ? {} : { budget_remaining_inr: Number(left) }),
      request_id: requestId,
    },
  }
}

/** Returns where a call went, as far as the headers of the reply say so. */
function routeOf(progress: ChatProgress, headers: ReplyHeaders): Record<string, unknown> {
  const preset = headers[brHeader.autoPreset]
  const capability = headers[brHeader.routeCapability]
  const reason = headers[brHeader.routeReason] ?? headers[brHeader.autoReason]
  return {
    ...(preset === undefined ? {} : { preset }),
    ...(capability === undefined ? {} : { capability }),
    ...(reason === undefined ? {} : { reason }),
    residency: progress.route?.residency ?? null,
    attempts: progress.attempts,
  }
}

function textOf({ text, reasoning }: ChatAnswer, finishReason: string | null, args: ChatArguments, dropped: string | undefined): string {
  const notes = [
    ...(finishReason === 'deadline' ? [`cut short after ${args.max_wait_s} s; ask for less, or give a larger max_wait_s`] : []),
    ...(finishReason === 'too_long'
      ? [`cut short at ${chatAnswerMaxBytes} bytes, the most that this tool returns; ask for less, or give a smaller max_tokens`]
      : []),
    ...(finishReason === 'length' ? ['cut short by max_tokens'] : []),
    ...(finishReason === 'content_filter' ? ['ended by the content filter of the provider'] : []),
    ...(text === '' && reasoning !== '' ? ['only reasoning came and no answer; give a larger max_tokens'] : []),
    ...(text === '' && reasoning === '' && (finishReason === 'stop' || finishReason === null) ? ['the model said nothing'] : []),
    ...(dropped === undefined ? [] : [`not passed on, because the provider has no word for it: ${dropped}`]),
  ]
  const added = notes.map(note => `[${note}]`).join('\n')
  return text === '' ? added : added === '' ? text : `${text}\n${added}`
}

function usageOf(usage: NonNullable<ChatAnswer['usage']>): Record<string, unknown> {
  return {
    prompt_tokens: usage.prompt_tokens,
    completion_tokens: usage.completion_tokens,
    total_tokens: usage.total_tokens,
    ...(usage['estimated'] === true ? { estimated: true } : {}),
  }
}

function jsonIn(text: string): { json?: unknown } {
  try {
    return { json: new JsonTexts().value(text) }
  } catch {
    return {}
  }
}
