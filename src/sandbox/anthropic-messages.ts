import { type Answer, answerTo, type Conversation } from './answer.ts'
import { messagesFault, sandboxSignature } from './anthropic-checks.ts'
import { contentOf, type Exchange, objectOrNull } from './exchange.ts'
import { chatModels } from './models.ts'

type Spoken = Extract<Answer, { kind: 'text' | 'call' }>
type Block = { readonly start: Record<string, unknown>; readonly deltas: readonly Record<string, unknown>[]; readonly whole: Record<string, unknown> }

/** Serves POST /v1/messages in Anthropic's wire format, streamed and not. */
export async function anthropicMessages(exchange: Exchange): Promise<void> {
  const body = await exchange.body()
  const talk = body === null ? null : conversationOf(body)
  if (body === null || talk === null)
    return exchange.json(400, nativeError('invalid_request_error', 'Send "model", "max_tokens" and a non-empty "messages" array.'))
  if (!chatModels.some(id => id === talk.model)) return exchange.json(404, nativeError('not_found_error', `model: ${talk.model}`))
  const fault = messagesFault(body)
  if (fault !== null) return exchange.json(400, nativeError('invalid_request_error', fault))
  const answer = spokenAs(answerTo(talk), body)
  switch (answer.kind) {
    case 'fail':
      return exchange.json(
        answer.status,
        nativeError(
          answer.status === 429 ? 'rate_limit_error' : answer.status >= 500 ? 'api_error' : 'invalid_request_error',
          `Simulated failure with status ${answer.status}.`,
        ),
      )
    case 'hang':
      return await exchange.hang()
    case 'text':
    case 'call':
      return body['stream'] === true ? await stream(exchange, talk.model, answer) : await whole(exchange, talk.model, answer)
  }
}

/** Removes the reasoning from an answer if the request has turned thinking off. */
function spokenAs(answer: Answer, body: Record<string, unknown>): Answer {
  return answer.kind === 'text' && objectOrNull(body['thinking'])?.['type'] === 'disabled' ? { ...answer, reasoning: [] } : answer
}

function nativeError(type: string, message: string): unknown {
  return { type: 'error', error: { type, message } }
}

function conversationOf(body: Record<string, unknown>): Conversation | null {
  const { model, messages, tools } = body
  if (typeof model !== 'string' || !Array.isArray(messages) || messages.length === 0 || typeof body['max_tokens'] !== 'number') return null
  const turns = messages.map(message => ({
    role: objectOrNull(message)?.['role'],
    content: objectOrNull(message)?.['content'],
    ...contentOf(objectOrNull(message)?.['content']),
  }))
  const lastContent = turns.at(-1)?.content
  const result = Array.isArray(lastContent) ? lastContent.map(objectOrNull).find(part => part?.['type'] === 'tool_result') : undefined
  const asked = turns.findLast(turn => turn.role === 'user')
  return {
    model,
    lastUserText: asked?.text ?? '',
    command: asked?.lastText ?? '',
    allText: [contentOf(body['system']).text, ...turns.map(turn => turn.text)].join(' '),
    messages: turns.length,
    images: turns.reduce((sum, turn) => sum + turn.images, 0),
    tools: (Array.isArray(tools) ? tools : []).map(tool => objectOrNull(tool)?.['name']).filter(name => typeof name === 'string'),
    toolResult: result ? contentOf(result['content']).text : null,
    maxTokens: body['max_tokens'],
  }
}

function blocksOf(exchange: Exchange, answer: Spoken): Block[] {
  if (answer.kind === 'call') {
    const head = { type: 'tool_use', id: `toolu_${exchange.ids.requestId().slice(4)}`, name: answer.tool }
    const input: unknown = JSON.parse(answer.pieces.join(''))
    return [
      { start: { ...head, input: {} }, deltas: answer.pieces.map(piece => ({ type: 'input_json_delta', partial_json: piece })), whole: { ...head, input } },
    ]
  }
  const text = {
    start: { type: 'text', text: '' },
    deltas: answer.pieces.map(piece => ({ type: 'text_delta', text: piece })),
    whole: { type: 'text', text: answer.pieces.join('') },
  }
  if (answer.reasoning.length === 0) return [text]
  const thinking = answer.reasoning.join('')
  return [
    {
      start: { type: 'thinking', thinking: '', signature: '' },
      deltas: [...answer.reasoning.map(piece => ({ type: 'thinking_delta', thinking: piece })), { type: 'signature_delta', signature: sandboxSignature }],
      whole: { type: 'thinking', thinking, signature: sandboxSignature },
    },
    text,
  ]
}

function outputTokens(answer: Spoken): number {
  return answer.pieces.length + (answer.kind === 'text' ? answer.reasoning.length : 0)
}

function stopOf(answer: Spoken): string {
  return answer.kind === 'call' ? 'tool_use' : answer.cut ? 'max_tokens' : 'end_turn'
}

function envelope(exchange: Exchange, model: string, answer: Spoken): Record<string, unknown> {
  return {
    id: `msg_sandbox_${exchange.ids.requestId().slice(4)}`,
    type: 'message',
    role: 'assistant',
    model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: answer.promptTokens, output_tokens: 0 },
  }
}

async function whole(exchange: Exchange, model: string, answer: Spoken): Promise<void> {
  if (answer.kind === 'text') {
    if (answer.breakAfter !== null) return await exchange.break()
    if (answer.pauseMs > 0) await exchange.clock.sleep(answer.pauseMs * answer.pieces.length, exchange.gone)
  }
  const usage = { input_tokens: answer.promptTokens, output_tokens: outputTokens(answer) }
  exchange.json(200, {
    ...envelope(exchange, model, answer),
    content: blocksOf(exchange, answer).map(block => block.whole),
    stop_reason: stopOf(answer),
    usage,
  })
}

async function stream(exchange: Exchange, model: string, answer: Spoken): Promise<void> {
  const send = (type: string, fields: Record<string, unknown>): Promise<void> =>
    exchange.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`)
  exchange.beginStream()
  await send('message_start', { message: envelope(exchange, model, answer) })
  let index = 0
  for (const block of blocksOf(exchange, answer)) {
    await send('content_block_start', { index, content_block: block.start })
    let sent = 0
    for (const delta of block.deltas) {
      if (answer.kind === 'text' && delta['type'] === 'text_delta') {
        if (sent === answer.breakAfter) return await exchange.break()
        if (answer.pauseMs > 0 && sent > 0) await exchange.clock.sleep(answer.pauseMs, exchange.gone)
        sent++
      }
      await send('content_block_delta', { index, delta })
    }
    await send('content_block_stop', { index })
    index++
  }
  await send('message_delta', { delta: { stop_reason: stopOf(answer), stop_sequence: null }, usage: { output_tokens: outputTokens(answer) } })
  await send('message_stop', {})
  exchange.end()
}
