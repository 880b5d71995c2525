import { createHash } from 'node:crypto'
import { type Answer, answerTo, type Conversation } from './answer.ts'
import { type Exchange, objectOrNull } from './exchange.ts'
import { chatModels } from './models.ts'

type Spoken = Extract<Answer, { kind: 'text' | 'call' }>
type Part = Record<string, unknown>

/** Matches `/v1/models/<model>:generateContent` and `:streamGenerateContent`. */
export const geminiPath = /^\/v1(?:beta)?\/models\/([^/:]+):(generateContent|streamGenerateContent)$/

/**
 * Serves Gemini's wire format, streamed and not. Function calls have a signature. When a request returns a signature, it must be the one that the
 * sandbox gave.
 */
export async function geminiGenerate(exchange: Exchange, path: string): Promise<void> {
  const [, model = '', method] = geminiPath.exec(path) ?? []
  const body = await exchange.body()
  const talk = body === null ? null : conversationOf(model, body)
  if (body === null || talk === null) return exchange.json(400, nativeError(400, 'INVALID_ARGUMENT', 'contents is not specified'))
  if (!chatModels.some(id => id === model)) return exchange.json(404, nativeError(404, 'NOT_FOUND', `models/${model} is not found.`))
  const fault = faultOf(body)
  if (fault !== null) return exchange.json(400, nativeError(400, 'INVALID_ARGUMENT', fault))
  const answer = answerTo(talk)
  switch (answer.kind) {
    case 'fail':
      return exchange.json(answer.status, nativeError(answer.status, statusOf(answer.status), `Simulated failure with status ${answer.status}.`))
    case 'hang':
      return await exchange.hang()
    case 'text':
    case 'call':
      return method === 'streamGenerateContent' ? await stream(exchange, answer, body) : await whole(exchange, answer, body)
  }
}

function nativeError(code: number, status: string, message: string): unknown {
  return { error: { code, message, status } }
}

function statusOf(status: number): string {
  return status === 429 ? 'RESOURCE_EXHAUSTED' : status === 503 ? 'UNAVAILABLE' : status >= 500 ? 'INTERNAL' : 'INVALID_ARGUMENT'
}

const objectsOf = (value: unknown): Part[] => (Array.isArray(value) ? value.map(objectOrNull).filter(item => item !== null) : [])
const textIn = (parts: readonly Part[]): string => parts.map(part => (typeof part['text'] === 'string' ? part['text'] : '')).join(' ')

function conversationOf(model: string, body: Record<string, unknown>): Conversation | null {
  const contents = objectsOf(body['contents'])
  if (contents.length === 0) return null
  const turns = contents.map(({ role, parts }) => ({ role, parts: objectsOf(parts), text: textIn(objectsOf(parts)) }))
  const asked = turns.findLast(turn => turn.role !== 'model')
  const result = turns
    .at(-1)
    ?.parts.map(part => objectOrNull(part['functionResponse']))
    .find(response => response !== null)
  const declared = objectsOf(body['tools']).flatMap(tool => objectsOf(tool['functionDeclarations']))
  const cap = objectOrNull(body['generationConfig'])?.['maxOutputTokens']
  return {
    model,
    lastUserText: asked?.text ?? '',
    command: (asked?.parts ?? []).map(part => part['text']).findLast(text => typeof text === 'string') ?? '',
    allText: [textIn(objectsOf(objectOrNull(body['systemInstruction'])?.['parts'])), ...turns.map(turn => turn.text)].join(' '),
    messages: turns.length,
    images: turns.flatMap(turn => turn.parts).filter(part => part['inlineData'] !== undefined || part['fileData'] !== undefined).length,
    tools: declared.map(({ name }) => name).filter(name => typeof name === 'string'),
    toolResult: result ? JSON.stringify(result['response'] ?? {}) : null,
    maxTokens: typeof cap === 'number' ? cap : null,
  }
}

/**
 * Returns the error that the real API would give. It gives errors for schema keywords that it does not support, for answers to calls that were not
 * made, and for signatures that it did not give.
 */
function faultOf(body: Record<string, unknown>): string | null {
  const called = new Set<unknown>()
  for (const [index, { parts }] of objectsOf(body['contents']).entries()) {
    if (objectsOf(parts).length === 0) return `contents[${index}].parts: must include at least one parts field`
    for (const { functionCall, functionResponse, thoughtSignature } of objectsOf(parts)) {
      const call = objectOrNull(functionCall)
      if (call !== null) called.add(call['name'])
      if (call !== null && thoughtSignature !== undefined && thoughtSignature !== signatureOf(String(call['name']))) return 'Corrupted thought signature.'
      const response = objectOrNull(functionResponse)
      if (response !== null && !called.has(response['name'])) return 'Please ensure that function response turn comes after a function call turn.'
    }
  }
  const schemas = JSON.stringify([body['tools'], objectOrNull(body['generationConfig'])?.['responseSchema']])
  const refused = /"(\$ref|\$schema|\$defs|additionalProperties|const|oneOf|exclusiveMinimum)":/.exec(schemas)?.[1]
  return refused === undefined ? null : `Invalid JSON payload received. Unknown name "${refused}": Cannot find field.`
}

function signatureOf(name: string): string {
  return createHash('sha256').update(`sandbox ${name}`).digest('base64')
}

/** Returns the parts one by one, as a stream sends them. */
function partsOf(answer: Spoken, body: Record<string, unknown>): Part[] {
  if (answer.kind === 'call') {
    const args: unknown = JSON.parse(answer.pieces.join(''))
    return [{ functionCall: { name: answer.tool, args }, thoughtSignature: signatureOf(answer.tool) }]
  }
  const thinking = objectOrNull(objectOrNull(body['generationConfig'])?.['thinkingConfig'])
  const thoughts = thinking?.['includeThoughts'] === true ? answer.reasoning.map(text => ({ text, thought: true })) : []
  return [...thoughts, ...answer.pieces.map(text => ({ text }))]
}

function usageOf(answer: Spoken): Record<string, number> {
  const thoughts = answer.kind === 'text' ? answer.reasoning.length : 0
  const candidatesTokenCount = answer.pieces.length
  const total = answer.promptTokens + candidatesTokenCount + thoughts
  return { promptTokenCount: answer.promptTokens, candidatesTokenCount, ...(thoughts === 0 ? {} : { thoughtsTokenCount: thoughts }), totalTokenCount: total }
}

const finishOf = (answer: Spoken): string => (answer.kind === 'text' && answer.cut ? 'MAX_TOKENS' : 'STOP')

function replyOf(parts: readonly Part[], responseId: string, end: { finishReason: string; usage: Record<string, number> } | null): Record<string, unknown> {
  return {
    candidates: [{ content: { role: 'model', parts }, ...(end === null ? {} : { finishReason: end.finishReason }), index: 0 }],
    ...(end === null ? {} : { usageMetadata: end.usage }),
    modelVersion: 'sandbox',
    responseId,
  }
}

async function whole(exchange: Exchange, answer: Spoken, body: Record<string, unknown>): Promise<void> {
  if (answer.kind === 'text') {
    if (answer.breakAfter !== null) return await exchange.break()
    if (answer.pauseMs > 0) await exchange.clock.sleep(answer.pauseMs * answer.pieces.length, exchange.gone)
  }
  const joined: Part[] = []
  for (const part of partsOf(answer, body)) {
    const last = joined.at(-1)
    if (last !== undefined && typeof last['text'] === 'string' && last['thought'] === part['thought']) last['text'] += String(part['text'])
    else joined.push({ ...part })
  }
  exchange.json(200, replyOf(joined, exchange.ids.requestId(), { finishReason: finishOf(answer), usage: usageOf(answer) }))
}

async function stream(exchange: Exchange, answer: Spoken, body: Record<string, unknown>): Promise<void> {
  const responseId = exchange.ids.requestId()
  const send = (parts: readonly Part[], end: Parameters<typeof replyOf>[2] = null): Promise<void> =>
    exchange.write(`data: ${JSON.stringify(replyOf(parts, responseId, end))}\r\n\r\n`)
  exchange.beginStream()
  let sent = 0
  for (const part of partsOf(answer, body)) {
    if (answer.kind === 'text' && part['thought'] !== true) {
      if (sent === answer.breakAfter) return await exchange.break()
      if (answer.pauseMs > 0 && sent > 0) await exchange.clock.sleep(answer.pauseMs, exchange.gone)
      sent++
    }
    await send([part])
  }
  await send([{ text: '' }], { finishReason: finishOf(answer), usage: usageOf(answer) })
  exchange.end()
}
