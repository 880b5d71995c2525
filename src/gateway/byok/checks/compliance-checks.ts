/** The requests of a compliance test and the checks of their replies. */

import { dialectOf } from '../../providers/dialects.ts'
import { usageFromOpenAi } from '../../wire/usage.ts'
import type { ComplianceCheck } from './compliance.ts'
import type { Answer, ComplianceDial } from './compliance-dial.ts'

type Value = Readonly<Record<string, unknown>>
type Reply = Extract<Answer, { kind: 'reply' }>

const prompt = { messages: [{ role: 'user', content: 'Reply with the single word OK.' }] }
/** Enough output for one word, and for the first reasoning tokens of a reasoning model. */
const outputMaxTokens = 32
const toolMaxTokens = 256
const toolName = 'get_weather'
const toolRequest = {
  messages: [{ role: 'user', content: 'What is the weather in Pune? Use the tool.' }],
  tools: [
    {
      type: 'function',
      function: {
        name: toolName,
        description: 'The weather of a city now.',
        parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
      },
    },
  ],
  tool_choice: { type: 'function', function: { name: toolName } },
}

/** Why a reply fails a check. Null when the reply passes. */
type Fault = string | null

const check = (name: ComplianceCheck['name'], required: boolean, answer: Answer, fault: Fault, good: string): ComplianceCheck => ({
  name,
  required,
  pass: fault === null,
  latencyMs: answer.kind === 'reply' && name === 'stream' ? answer.firstByteMs : answer.totalMs,
  detail: fault ?? good,
})

/** Sends a plain request and checks that the reply is a completion in the shape of OpenAI. */
export async function readChat(dial: ComplianceDial): Promise<{ check: ComplianceCheck; hasUsage: boolean }> {
  const answer = await dial.chat(prompt, outputMaxTokens)
  const fault = refusal(answer, dial) ?? completionFault(answer)
  const value = answer.kind === 'reply' ? objectOf(answer.text) : null
  return { check: check('chat', true, answer, fault, 'answered with a chat completion'), hasUsage: usageFromOpenAi(value?.['usage']) !== null }
}

/** Sends a streamed request and checks that the reply is a stream of server-sent events in the shape of OpenAI, up to [DONE]. */
export async function readStream(dial: ComplianceDial): Promise<{ check: ComplianceCheck; hasUsage: boolean; timing: string }> {
  const answer = await dial.chat({ ...prompt, stream: true, stream_options: { include_usage: true } }, outputMaxTokens)
  const refused = refusal(answer, dial)
  if (refused !== null || answer.kind === 'none')
    return { check: check('stream', true, answer, refused, ''), hasUsage: false, timing: 'not measured: there was no stream' }
  const tap = dialectOf('openai').tap()
  tap.push(Buffer.from(answer.text))
  const fault = streamFault(answer, tap)
  return {
    check: check('stream', true, answer, fault, 'streamed chunks up to [DONE]'),
    hasUsage: tap.usage !== null,
    timing: `first byte after ${answer.firstByteMs} ms, whole stream after ${answer.totalMs} ms`,
  }
}

/** Sends a request that requires a call of a named tool, and checks the reply. */
export async function checkTools(dial: ComplianceDial): Promise<ComplianceCheck> {
  const answer = await dial.chat(toolRequest, toolMaxTokens)
  const fault = refusal(answer, dial) ?? toolFault(answer)
  return check('tools', false, answer, fault === null ? null : `${fault}; calls with tools may fail here`, 'called the tool that it was given')
}

/** Sends a malformed request and checks that the refusal has the form that clients expect. */
export async function checkErrors(dial: ComplianceDial): Promise<ComplianceCheck> {
  const answer = await dial.send({ messages: 'not a list' })
  return check('errors', false, answer, errorFault(answer), 'refused a malformed request with an error object')
}

function refusal(answer: Answer, dial: ComplianceDial): Fault {
  if (answer.kind === 'none') return answer.why
  const { status, text } = answer
  if (status >= 300 && status < 400) return `it answered ${status}: redirects are not followed. Register the address that it points to`
  if (status === 200) return null
  const said = dial.excerpt(text)
  return `it answered ${status}${said === '' ? '' : `: ${said}`}${hints[status] ?? ''}`
}

const hints: Readonly<Record<number, string>> = {
  401: ' (is the key right?)',
  403: ' (is the key right?)',
  404: ' (does base_url end in the version, for example /v1, and does the server know upstream_model?)',
}

function completionFault(answer: Answer): Fault {
  if (answer.kind === 'none') return answer.why
  const value = objectOf(answer.text)
  if (value === null) return 'it answered with something that is no JSON object'
  const choice = firstOf(value['choices'])
  if (choice === null) return 'its answer has no "choices"'
  const message = asObject(choice['message'])
  if (message === null) return 'its answer has no "choices[0].message"'
  const { content } = message
  if (message['role'] !== 'assistant' || !(typeof content === 'string' || content === null || content === undefined))
    return 'the message of its answer lacks role "assistant" or text content'
  if (typeof choice['finish_reason'] !== 'string') return 'its answer has no "choices[0].finish_reason"'
  if (typeof value['id'] !== 'string' || value['object'] !== 'chat.completion') return 'its answer lacks "id" or "object": "chat.completion"'
  return null
}

function streamFault(answer: Reply, tap: { readonly finished: boolean; readonly failed: boolean }): Fault {
  if (!answer.type.startsWith('text/event-stream')) return 'it answered a streamed request with another content-type than text/event-stream'
  if (tap.failed) return 'its stream carried an error'
  const chunks = answer.text.split(/\r?\n/).filter(line => line.startsWith('data:') && !line.includes('[DONE]'))
  const values = chunks.map(line => objectOf(line.slice('data:'.length)))
  if (values.includes(null)) return 'an event of its stream is no JSON object'
  const deltas = values.filter(value => asObject(firstOf(value?.['choices'])?.['delta']) !== null)
  if (deltas.length === 0) return 'its stream has no chunk with "choices[0].delta"'
  return tap.finished ? null : 'its stream does not end in "data: [DONE]"'
}

function toolFault(answer: Answer): Fault {
  const value = answer.kind === 'reply' ? objectOf(answer.text) : null
  const call = firstOf(asObject(firstOf(value?.['choices'])?.['message'])?.['tool_calls'])
  if (call === null) return 'it answered without a tool call'
  const called = asObject(call['function'])
  if (called?.['name'] !== toolName || typeof call['id'] !== 'string') return 'its tool call lacks an id or the name of the tool'
  return typeof called['arguments'] === 'string' ? null : 'the arguments of its tool call are no string'
}

function errorFault(answer: Answer): Fault {
  if (answer.kind === 'none') return answer.why
  if (answer.status < 400 || answer.status >= 500) return `it answered a malformed request with ${answer.status} where 4xx is expected`
  const error = asObject(objectOf(answer.text)?.['error'])
  return typeof error?.['message'] === 'string' ? null : `it answered ${answer.status} without an "error" object that has a message`
}

function objectOf(text: string): Value | null {
  try {
    return asObject(JSON.parse(text))
  } catch {
    return null
  }
}

function asObject(value: unknown): Value | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Value) : null
}

function firstOf(value: unknown): Value | null {
  return Array.isArray(value) ? asObject(value[0]) : null
}
