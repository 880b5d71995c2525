import { type Answer, answerTo, type Conversation } from '../answer.ts'
import { contentOf, type Exchange, objectOrNull } from '../exchange.ts'
import { chatModels, openAiError, refuseModel } from '../models.ts'
import { type OutputItem, outputItems } from './openai-responses-items.ts'

type Spoken = Extract<Answer, { kind: 'text' | 'call' }>

/** Serves POST /v1/responses, OpenAI's second wire format, streamed and not. Nothing is stored. */
export async function openAiResponses(exchange: Exchange): Promise<void> {
  const body = await exchange.body()
  const talk = body === null ? null : conversationOf(body)
  if (body === null || talk === null)
    return exchange.json(400, openAiError('Send a JSON object with "model" and a non-empty "input".', 'invalid_request_error', null))
  if (refuseModel(exchange, talk.model, chatModels)) return
  if (talk.images > 0 && talk.model !== 'sandbox-vision')
    return exchange.json(400, openAiError(`The model \`${talk.model}\` does not take images.`, 'invalid_request_error', null))
  const answer = answerTo(talk)
  switch (answer.kind) {
    case 'fail': {
      const type = answer.status === 429 ? 'rate_limit_error' : answer.status >= 500 ? 'server_error' : 'invalid_request_error'
      const error = openAiError(`Simulated failure with status ${answer.status}.`, type, `sandbox_${answer.status}`)
      return exchange.json(answer.status, error, answer.status === 429 ? { 'retry-after': '1' } : {})
    }
    case 'hang':
      return await exchange.hang()
    case 'text':
    case 'call':
      return body['stream'] === true ? await stream(exchange, body, talk.model, answer) : await whole(exchange, body, talk.model, answer)
  }
}

function conversationOf(body: Record<string, unknown>): Conversation | null {
  const { model, input, instructions } = body
  if (typeof model !== 'string' || !((typeof input === 'string' || Array.isArray(input)) && input.length > 0)) return null
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : input.map(item => objectOrNull(item) ?? {})
  const turns = items.map(item => ({ item, ...contentOf(item['content'] ?? item['output']) }))
  const last = turns.at(-1)
  const isResult = String(last?.item['type']).endsWith('_output')
  const asked = turns.findLast(turn => turn.item['role'] === 'user')
  return {
    model,
    lastUserText: asked?.text ?? '',
    command: asked?.lastText ?? '',
    allText: [typeof instructions === 'string' ? instructions : '', ...turns.map(turn => turn.text)].join(' '),
    messages: turns.length,
    images: turns.reduce((sum, turn) => sum + turn.images, 0),
    tools: toolNames(body['tools']),
    toolResult: isResult && last !== undefined ? last.text : null,
    maxTokens: typeof body['max_output_tokens'] === 'number' ? body['max_output_tokens'] : null,
  }
}

/** Returns the names of the tools. The name of a tool in a namespace is the namespace and the tool, joined by two underscores. */
function toolNames(tools: unknown, namespace = ''): string[] {
  return (Array.isArray(tools) ? tools : []).flatMap(given => {
    const tool = objectOrNull(given)
    if (tool === null || typeof tool['name'] !== 'string') return []
    return tool['type'] === 'namespace' ? toolNames(tool['tools'], `${tool['name']}__`) : [`${namespace}${tool['name']}`]
  })
}

function usageOf(answer: Spoken): Record<string, unknown> {
  const reasoning = answer.kind === 'text' ? answer.reasoning.length : 0
  const output = answer.pieces.length + reasoning
  return {
    input_tokens: answer.promptTokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: answer.promptTokens + output,
  }
}

/** Returns the response object before it has any output. */
function envelope(exchange: Exchange, model: string): Record<string, unknown> {
  return {
    id: `resp_sandbox_${exchange.ids.requestId().slice(4)}`,
    object: 'response',
    created_at: Math.floor(exchange.clock.nowMs() / 1000),
    status: 'in_progress',
    model,
    output: [],
    store: false,
    error: null,
    incomplete_details: null,
    usage: null,
  }
}

function ended(head: Record<string, unknown>, answer: Spoken, items: readonly OutputItem[]): Record<string, unknown> {
  const cut = answer.kind === 'text' && answer.cut
  return {
    ...head,
    status: cut ? 'incomplete' : 'completed',
    incomplete_details: cut ? { reason: 'max_output_tokens' } : null,
    output: items.map(item => item.whole),
    usage: usageOf(answer),
  }
}

async function whole(exchange: Exchange, body: Record<string, unknown>, model: string, answer: Spoken): Promise<void> {
  if (answer.kind === 'text') {
    if (answer.breakAfter !== null) return await exchange.break()
    if (answer.pauseMs > 0) await exchange.clock.sleep(answer.pauseMs * answer.pieces.length, exchange.gone)
  }
  exchange.json(200, ended(envelope(exchange, model), answer, outputItems(exchange.ids, body['tools'], answer)))
}

async function stream(exchange: Exchange, body: Record<string, unknown>, model: string, answer: Spoken): Promise<void> {
  let number = 0
  const send = (type: string, fields: Record<string, unknown>): Promise<void> =>
    exchange.write(`event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: number++, ...fields })}\n\n`)
  const response = envelope(exchange, model)
  const items = outputItems(exchange.ids, body['tools'], answer)
  exchange.beginStream()
  await send('response.created', { response })
  await send('response.in_progress', { response })
  for (const [index, item] of items.entries()) {
    await send('response.output_item.added', { output_index: index, item: item.start })
    const at = { item_id: item.start['id'], output_index: index, ...item.place }
    if (item.part !== null) await send(`${item.part.event}.added`, { ...at, part: item.part.empty })
    let sent = 0
    for (const delta of item.deltas) {
      if (answer.kind === 'text' && item.start['type'] === 'message') {
        if (sent === answer.breakAfter) return await exchange.break()
        if (answer.pauseMs > 0 && sent > 0) await exchange.clock.sleep(answer.pauseMs, exchange.gone)
        sent++
      }
      await send(`${item.event}.delta`, { ...at, delta })
    }
    await send(`${item.event}.done`, { ...at, [item.told]: item.deltas.join('') })
    if (item.part !== null) await send(`${item.part.event}.done`, { ...at, part: item.part.whole })
    await send('response.output_item.done', { output_index: index, item: item.whole })
  }
  const last = ended(response, answer, items)
  await send(`response.${String(last['status'])}`, { response: last })
  exchange.end()
}
