import { createHash } from 'node:crypto'
import { simulatedJson } from './simulated-json.ts'

/** A conversation in the form that the simulation uses, from any wire format. */
export interface Conversation {
  readonly model: string
  readonly lastUserText: string
  /**
   * The last text part of the last user message. Only this part is read as a command, because programs put their own notes before the text that a
   * person typed.
   */
  readonly command: string
  /** Text of all messages together. */
  readonly allText: string
  readonly messages: number
  readonly images: number
  /** Names of the tools that may be called. */
  readonly tools: readonly string[]
  /** The text of the last message if that message is the result of a tool. Otherwise null. */
  readonly toolResult: string | null
  /** The JSON schema of the requested answer. An empty schema means any JSON object. When absent, the answer is text. */
  readonly schema?: unknown
  /** The maximum number of completion tokens, including reasoning. */
  readonly maxTokens: number | null
}

/** What the simulation decides to answer. */
export type Answer =
  | {
      readonly kind: 'text'
      readonly reasoning: readonly string[]
      readonly pieces: readonly string[]
      readonly cut: boolean
      readonly pauseMs: number
      readonly breakAfter: number | null
      readonly promptTokens: number
    }
  | { readonly kind: 'call'; readonly tool: string; readonly pieces: readonly string[]; readonly promptTokens: number }
  | { readonly kind: 'fail'; readonly status: number }
  | { readonly kind: 'hang' }

/** Number of tokens of an image part. */
const imageTokens = 85
/** Number of tokens of each message in addition to its words. */
const messageTokens = 3
const slowPauseMs = 100
const slowMax = 6000
const longMax = 100_000
const callPieceChars = 16

/**
 * Splits a text into tokens by the sandbox's own rule. Each word with the white space before it is one token. Each message has 3 more tokens, and
 * each image has 85. A tool call has one token for each 16 characters of its arguments. There is no model, so the count is exact in streams and in
 * plain replies.
 */
export function pieces(text: string): string[] {
  // White space at the end belongs to no word. With it, the pattern would try every character of a long run as a beginning.
  return text.trimEnd().match(/\s*\S+/g) ?? []
}

/**
 * Returns the answer to the last text part of the last user message. `call <tool> <json>`, `fail <status>`, `fail stream`, `hang`, `slow <n>` and
 * `long <n>` are commands. When the text asks which of several images is best, the answer is the number of one image, as JSON. The answer to any
 * other text is a sentence that says that the answer is simulated.
 */
export function answerTo(talk: Conversation): Answer {
  const promptTokens = pieces(talk.allText).length + talk.messages * messageTokens + talk.images * imageTokens
  const text = (words: readonly string[], more: { pauseMs?: number; breakAfter?: number } = {}): Answer =>
    capped(talk, words, promptTokens, more.pauseMs ?? 0, more.breakAfter ?? null)
  if (talk.toolResult !== null)
    return text(pieces(`Simulated reply: the tool answered with ${pieces(talk.toolResult).length} words (digest ${digest(talk.toolResult)}).`))

  const prompt = talk.command.trim()
  const call = /^call\s+(\S+)\s*([\s\S]*)$/.exec(prompt)
  const tool = call?.[1]
  if (tool !== undefined && talk.tools.includes(tool)) return { kind: 'call', tool, pieces: slices(toolArguments(call?.[2] ?? '')), promptTokens }
  const failing = /^fail\s+([45]\d\d)$/.exec(prompt)?.[1]
  if (failing !== undefined) return { kind: 'fail', status: Number(failing) }
  if (prompt === 'fail stream') return text(pieces('This simulated stream breaks off before its end.'), { breakAfter: 3 })
  if (prompt === 'hang') return { kind: 'hang' }
  const slow = /^slow\s+(\d{1,6})$/.exec(prompt)?.[1]
  if (slow !== undefined) return text(counted(Math.min(Number(slow), slowMax)), { pauseMs: slowPauseMs })
  const long = /^long\s+(\d{1,9})$/.exec(prompt)?.[1]
  if (long !== undefined) return text(counted(Math.min(Number(long), longMax)))
  const shown = /\bWhich of the (\d{1,3}) images is best\?$/.exec(prompt)?.[1]
  if (shown !== undefined && talk.images > 0) return text([`{"best": ${bestOf(Number(shown), prompt)}}`])
  return text(pieces(talk.schema === undefined ? sentence(talk) : JSON.stringify(simulatedJson(talk.schema, sentence(talk)))))
}

/** Returns the number of the image that is called best. The same request always gives the same result. */
function bestOf(count: number, prompt: string): number {
  return 1 + (Number.parseInt(digest(prompt), 16) % Math.max(1, count))
}

function sentence(talk: Conversation): string {
  const images = talk.images === 0 ? '' : ` and ${talk.images} image${talk.images === 1 ? '' : 's'}`
  return `This is a simulated reply from the sandbox provider; no model was asked. The last message had ${pieces(talk.lastUserText).length} words${images} (digest ${digest(talk.lastUserText)}).`
}

/** Returns the first twelve hex digits of the SHA-256. Equal digests show that two replies answer the same message. */
function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12)
}

function counted(count: number): string[] {
  return Array.from({ length: Math.max(1, count) }, (_, index) => `${index === 0 ? '' : ' '}w${index + 1}`)
}

function capped(talk: Conversation, words: readonly string[], promptTokens: number, pauseMs: number, breakAfter: number | null): Answer {
  const thoughts = talk.model === 'sandbox-reasoning' ? pieces(`Simulated reasoning about ${pieces(talk.lastUserText).length} words, then the answer.`) : []
  const limit = talk.maxTokens ?? Number.POSITIVE_INFINITY
  const reasoning = thoughts.slice(0, limit)
  const kept = words.slice(0, Math.max(0, limit - reasoning.length))
  return { kind: 'text', reasoning, pieces: kept, cut: reasoning.length + kept.length < thoughts.length + words.length, pauseMs, breakAfter, promptTokens }
}

/** Returns the JSON of the command if it is valid. Otherwise wraps the text in JSON, so that arguments are always valid JSON. */
function toolArguments(text: string): string {
  const trimmed = text.trim()
  if (trimmed === '') return '{}'
  try {
    return JSON.stringify(JSON.parse(trimmed))
  } catch {
    return JSON.stringify({ input: trimmed })
  }
}

function slices(text: string): string[] {
  return Array.from({ length: Math.ceil(text.length / callPieceChars) }, (_, index) => text.slice(index * callPieceChars, (index + 1) * callPieceChars))
}
