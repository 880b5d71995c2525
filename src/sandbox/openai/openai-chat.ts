import { type Answer, answerTo, type Conversation } from '../answer.ts'
import { contentOf, type Exchange, objectOrNull } from '../exchange.ts'
import { chatModels, openAiError, refuseModel } from '../models.ts'

type Spoken = Extract<Answer, { kind: 'text' | 'call' }>

/** Serves POST /v1/chat/completions in OpenAI's wire format, streamed and not. */
export async function openAiChat(exchange: Exchange): Promise<void> {
  const body = await exchange.body()
  const talk = body === null ? null : conversationOf(body)
  if (body === null || talk === null)
    return exchange.json(400, openAiError('Send a JSON object with "model" and a non-empty "messages" array.', 'invalid_request_error', null))
  if (refuseModel(exchange, talk.model, chatModels)) return
  if (talk.images > 0 && talk.model !== 'sandbox-vision')
    return exchange.json(400, openAiError(`The model \`${talk.model}\` does not take images.`, 'invalid_request_error', null))
  const answer = answerTo(talk)
  switch (answer.kind) {
    case 'fail':
      return fail(exchange, answer.status)
    case 'hang':
      return await exchange.hang()
    case 'text':
    case 'call':
      return body['stream'] === true
        ? await stream(exchange, talk.model, answer, objectOrNull(body['stream_options'])?.['include_usage'] === true)
        : await whole(exchange, talk.model, answer)
  }
}

function conversationOf(body: Record<string, unknown>): Conversation | null {
  const { model, messages, tools } = body
  if (typeof model !== 'string' || !Array.isArray(messages) || messages.length === 0) return null
  const turns = messages.map(message => ({ role: objectOrNull(message)?.['role'], ...contentOf(objectOrNull(message)?.['content']) }))
  const last = turns.at(-1)
  const cap = body['max_completion_tokens'] ?? body['max_tokens']
  const asked = turns.findLast(turn => turn.role === 'user')
  return {
    model,
    lastUserText: asked?.text ?? '',
    command: asked?.lastText ?? '',
    allText: turns.map(turn => turn.text).join(' '),
    messages: turns.length,
    images: turns.reduce((sum, turn) => sum + turn.images, 0),
    tools: (Array.isArray(tools) ? tools : []).map(tool => objectOrNull(objectOrNull(tool)?.['function'])?.['name']).filter(name => typeof name === 'string'),
    toolResult: last?.role === 'tool' ? last.text : null,
    maxTokens: typeof cap === 'number' ? cap : null,
    ...schemaOf(objectOrNull(body['response_format'])),
  }
}

function schemaOf(format: Record<string, unknown> | null): { schema?: unknown } {
  if (format?.['type'] === 'json_object') return { schema: {} }
  return format?.['type'] === 'json_schema' ? { schema: objectOrNull(format['json_schema'])?.['schema'] ?? {} } : {}
}

function fail(exchange: Exchange, status: number): void {
  const type = status === 429 ? 'rate_limit_error' : status >= 500 ? 'server_error' : 'invalid_request_error'
  exchange.json(status, openAiError(`Simulated failure with status ${status}.`, type, `sandbox_${status}`), status === 429 ? { 'retry-after': '1' } : {})
}

/** Returns the usage in OpenAI's format. */
function usageOf(answer: Spoken): Record<string, unknown> {
  const reasoning = answer.kind === 'text' ? answer.reasoning.length : 0
  const completion = answer.pieces.length + reasoning
  return {
    prompt_tokens: answer.promptTokens,
    completion_tokens: completion,
    total_tokens: answer.promptTokens + completion,
    prompt_tokens_details: { cached_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: reasoning },
  }
}

function finishOf(answer: Spoken): string {
  return answer.kind === 'call' ? 'tool_calls' : answer.cut ? 'length' : 'stop'
}

async function whole(exchange: Exchange, model: string, answer: Spoken): Promise<void> {
  if (answer.kind === 'text') {
    if (answer.breakAfter !== null) return await exchange.break()
    if (answer.pauseMs > 0) await exchange.clock.sleep(answer.pauseMs * answer.pieces.length, exchange.gone)
  }
  const message =
    answer.kind === 'call'
      ? {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: callId(exchange), type: 'function', function: { name: answer.tool, arguments: answer.pieces.join('') } }],
        }
      : { role: 'assistant', content: answer.pieces.join(''), ...(answer.reasoning.length === 0 ? {} : { reasoning_content: answer.reasoning.join('') }) }
  exchange.json(200, {
    ...envelope(exchange, model, 'chat.completion'),
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishOf(answer) }],
    usage: usageOf(answer),
  })
}

function envelope(exchange: Exchange, model: string, object: string): Record<string, unknown> {
  return {
    id: `chatcmpl-sandbox-${exchange.ids.requestId().slice(4)}`,
    object,
    created: Math.floor(exchange.clock.nowMs() / 1000),
    model,
    system_fingerprint: 'sandbox',
  }
}

function callId(exchange: Exchange): string {
  return `call_${exchange.ids.requestId().slice(4)}`
}

async function stream(exchange: Exchange, model: string, answer: Spoken, withUsage: boolean): Promise<void> {
  const head = envelope(exchange, model, 'chat.completion.chunk')
  const send = (delta: Record<string, unknown>, finish: string | null = null): Promise<void> =>
    exchange.write(frame({ ...head, choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }], ...(withUsage ? { usage: null } : {}) }))
  exchange.beginStream()
  await send({ role: 'assistant', content: answer.kind === 'call' ? null : '' })
  if (answer.kind === 'call') {
    await send({ tool_calls: [{ index: 0, id: callId(exchange), type: 'function', function: { name: answer.tool, arguments: '' } }] })
    for (const piece of answer.pieces) await send({ tool_calls: [{ index: 0, function: { arguments: piece } }] })
  } else {
    for (const piece of answer.reasoning) await send({ reasoning_content: piece })
    let sent = 0
    for (const piece of answer.pieces) {
      if (sent === answer.breakAfter) return await exchange.break()
      if (answer.pauseMs > 0 && sent > 0) await exchange.clock.sleep(answer.pauseMs, exchange.gone)
      await send({ content: piece })
      sent++
    }
  }
  await send({}, finishOf(answer))
  if (withUsage) await exchange.write(frame({ ...head, choices: [], usage: usageOf(answer) }))
  await exchange.write('data: [DONE]\n\n')
  exchange.end()
}

function frame(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`
}
