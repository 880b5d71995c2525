import type { TurnUsage } from '../turns/turn.ts'
import { countOf, eventsOf, type Heard, type Hearing, listOf, must, nothingHeard, objectOf, textOf } from './heard.ts'

type Event = Readonly<Record<string, unknown>>

const finishes: Readonly<Record<string, Heard['finish']>> = { STOP: 'stop', MAX_TOKENS: 'length', SAFETY: 'content_filter' }

function geminiUsage(value: unknown): TurnUsage {
  const usage = objectOf(value, 'usageMetadata')
  const prompt = countOf(usage['promptTokenCount'], 'promptTokenCount')
  const reasoning = countOf(usage['thoughtsTokenCount'] ?? 0, 'thoughtsTokenCount')
  const completion = countOf(usage['candidatesTokenCount'] ?? 0, 'candidatesTokenCount') + reasoning
  must(usage['totalTokenCount'] === prompt + completion, 'totalTokenCount is the sum', usage)
  const cached = countOf(usage['cachedContentTokenCount'] ?? 0, 'cachedContentTokenCount')
  must(cached <= prompt, 'cached tokens are part of the prompt', usage)
  return { prompt, completion, cached, cacheWrite: 0, reasoning }
}

/** Reads one reply, or one chunk of a stream. */
function hear(hearing: Hearing, reply: Event): void {
  must(typeof reply['modelVersion'] === 'string' && typeof reply['responseId'] === 'string', 'a reply names its model and itself', reply)
  for (const candidate of listOf(reply['candidates'] ?? [], 'candidates')) {
    must(candidate['index'] === 0, 'there is one answer', candidate)
    const content = objectOf(candidate['content'], 'content')
    must(content['role'] === 'model', 'the model speaks', content)
    for (const part of listOf(content['parts'], 'parts')) hearPart(hearing, part)
    if (candidate['finishReason'] === undefined) continue
    must(hearing.finish === null, 'one reason of the end', candidate)
    const finish = finishes[textOf(candidate['finishReason'], 'finishReason')]
    must(finish !== undefined, 'a finishReason of the format', candidate)
    hearing.finish = finish === 'stop' && hearing.calls.length > 0 ? 'tool_calls' : finish
  }
  if (reply['usageMetadata'] !== undefined) hearing.usage = geminiUsage(reply['usageMetadata'])
}

function hearPart(hearing: Hearing, part: Event): void {
  if (part['thoughtSignature'] !== undefined) {
    const signature = textOf(part['thoughtSignature'], 'thoughtSignature')
    must(signature !== '' && Buffer.from(signature, 'base64').toString('base64') === signature, 'a signature is base64', part)
  }
  if (part['functionCall'] !== undefined) {
    const call = objectOf(part['functionCall'], 'functionCall')
    hearing.calls.push({ id: textOf(call['id'], 'id'), name: textOf(call['name'], 'name'), arguments: JSON.stringify(objectOf(call['args'], 'args')) })
    return
  }
  const text = textOf(part['text'], 'text')
  if (part['thought'] === true) hearing.reasoning += text
  else hearing.text += text
}

/** Reads a whole reply of Google's API. */
export function readGemini(reply: Event): Heard {
  const hearing = nothingHeard()
  hear(hearing, reply)
  must(hearing.finish !== null && hearing.usage !== null, 'a whole reply has an end and its usage', reply)
  return hearing
}

/** Reads a stream. It checks that every event is one chunk, that no content follows the reason of the end, and that an error is the last event. */
export function readGeminiStream(stream: string): Heard {
  const hearing = nothingHeard()
  for (const { name, data } of eventsOf(stream)) {
    must(name === null, 'events have no names', data)
    const event = objectOf(JSON.parse(data), 'a chunk')
    must(hearing.fault === null, 'nothing behind the error', data)
    if (Object.keys(event).length === 0) continue
    if (event['error'] !== undefined) {
      const error = objectOf(event['error'], 'error')
      must(hearing.finish === null, 'no error behind the end', data)
      must(typeof error['code'] === 'number' && error['code'] >= 400, 'a status', error)
      hearing.fault = { type: textOf(error['status'], 'status'), message: textOf(error['message'], 'message') }
      continue
    }
    must(hearing.finish === null || event['candidates'] === undefined, 'no content behind the end', data)
    hear(hearing, event)
  }
  must(hearing.finish !== null || hearing.fault !== null, 'the stream has an end')
  return hearing
}
