/** One streamed chat completion, as the page of the playground reads it. */
import { ApiError } from '../../../api/api-error.ts'
import { errorOf, send, unreachable } from '../../../api/call.ts'
import { forgetToken, playgroundToken } from './token.ts'

export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant'
  readonly content: string
}

/** What is sent, apart from the fields that make it a stream. The code to copy shows the same body. */
export interface ChatBody {
  readonly model: string
  readonly messages: readonly ChatMessage[]
  readonly temperature?: number
  readonly max_tokens?: number
}

/** What a stream says, in its order. */
export type ChatEvent =
  | { readonly kind: 'open'; readonly provider: string; readonly requestId: string | null; readonly budgetLeftInr: number | null }
  | { readonly kind: 'text' | 'thought'; readonly text: string }
  | {
      readonly kind: 'usage'
      readonly model: string | null
      readonly promptTokens: number
      readonly completionTokens: number
      readonly costInr: number | null
      readonly valueInr: number | null
    }

/** Maximum length of an answer. A longer one ends with an error, so that a page cannot grow without end. */
const answerCharsMax = 2_000_000
/** Maximum length of one line of a stream. */
const lineCharsMax = 4_000_000

/** Sends JSON with the token of the playground. A token that has ended is replaced once. Throws an ApiError for each refusal. */
export async function sendWithToken(path: string, body: unknown, signal: AbortSignal): Promise<Response> {
  for (let attempt = 1; ; attempt++) {
    const headers = { authorization: `Bearer ${await playgroundToken()}`, 'content-type': 'application/json' }
    const response = await send(path, { method: 'POST', headers, credentials: 'omit', body: JSON.stringify(body), signal })
    if (response.ok) return response
    const text = await response.text()
    if (response.status !== 401 || attempt > 1) throw errorOf(response, text)
    forgetToken()
  }
}

/** Streams the answer. Throws an ApiError when the gateway refuses the call or the stream breaks off, and an AbortError when `signal` ends it. */
export async function* streamChat(body: ChatBody, signal: AbortSignal): AsyncGenerator<ChatEvent> {
  const response = await sendWithToken('/v1/chat/completions', { ...body, stream: true, stream_options: { include_usage: true } }, signal)
  const number = (name: string): number | null => (response.headers.has(name) ? Number(response.headers.get(name)) : null)
  const requestId = response.headers.get('x-request-id')
  yield { kind: 'open', provider: response.headers.get('x-br-provider') ?? '', requestId, budgetLeftInr: number('x-br-budget-remaining-inr') }
  let chars = 0
  for await (const data of dataLines(response)) {
    if (data === '[DONE]') return
    for (const event of eventsOf(data, requestId)) {
      if (event.kind === 'text' || event.kind === 'thought') chars += event.text.length
      if (chars > answerCharsMax)
        throw new ApiError('The answer is too long for this page. Nothing more of it is read.', { status: 0, code: 'too_long', requestId })
      yield event
    }
  }
  throw new ApiError('The answer broke off before its end. What arrived of it is shown.', { status: 0, code: 'broken_stream', requestId })
}

/** Yields the data of each event. Comments, such as those of a silence, are left out. */
async function* dataLines(response: Response): AsyncGenerator<string> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  try {
    while (reader !== undefined) {
      const { done, value } = await reader.read()
      if (done) return
      const lines = (rest + value).split('\n')
      rest = lines.pop() ?? ''
      if (rest.length > lineCharsMax) throw new ApiError('A line of the stream is too long.', { status: 0, code: 'too_long' })
      for (const line of lines) if (line.startsWith('data:')) yield line.slice('data:'.length).trim()
    }
  } catch (cause) {
    if (cause instanceof ApiError || (cause instanceof DOMException && cause.name === 'AbortError')) throw cause
    throw unreachable(cause)
  } finally {
    await reader?.cancel().catch(() => undefined)
  }
}

interface Chunk {
  readonly error?: { readonly message?: string; readonly code?: string }
  readonly model?: string
  readonly choices?: readonly {
    readonly delta?: { readonly content?: string | null; readonly reasoning_content?: string | null; readonly reasoning?: string | null }
  }[]
  readonly usage?: { readonly prompt_tokens?: number; readonly completion_tokens?: number } | null
  readonly x_br?: { readonly cost_inr?: number; readonly value_inr?: number }
}

function* eventsOf(data: string, requestId: string | null): Generator<ChatEvent> {
  const chunk = JSON.parse(data) as Chunk
  if (chunk.error !== undefined) throw new ApiError(chunk.error.message ?? 'The call failed.', { status: 0, code: chunk.error.code ?? 'unknown', requestId })
  const delta = chunk.choices?.[0]?.delta
  const thought = delta?.reasoning_content ?? delta?.reasoning
  if (thought) yield { kind: 'thought', text: thought }
  if (delta?.content) yield { kind: 'text', text: delta.content }
  if (chunk.usage)
    yield {
      kind: 'usage',
      model: chunk.model ?? null,
      promptTokens: chunk.usage.prompt_tokens ?? 0,
      completionTokens: chunk.usage.completion_tokens ?? 0,
      costInr: chunk.x_br?.cost_inr ?? null,
      valueInr: chunk.x_br?.value_inr ?? null,
    }
}
