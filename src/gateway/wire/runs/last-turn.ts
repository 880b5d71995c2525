/** Reads the last calls of tools in a conversation, with their results, so that two turns can be compared. */
import { isObject } from '../../../platform/values/json.ts'
import type { WireFormat } from '../client-format.ts'
import { isCall, isOutput } from '../responses/request/call-outputs.ts'

/** The calls of a turn and their results as a list of texts. Two turns with the same texts are the same. Ids of calls are left out. */
export type Turn = readonly string[]

type Body = Readonly<Record<string, unknown>>

/** The most values of a turn that are read. */
const valuesMax = 2000
/** The deepest value that is read. */
const depthMax = 32
/** Longer arguments are compared as text, also when only the order of their keys differs. So are those beyond the characters of a turn. */
const argumentsMaxChars = 16 * 1024
const parsedMaxChars = 64 * 1024
/** Names of larger objects are compared in the order in which they came. */
const sortedMax = 256

/** Returns the last turn of a conversation: empty when its last answer calls no tool, null when it has no answer or no result yet. */
export function lastTurnOf(format: WireFormat, body: Body): Turn | null {
  const texts = new TurnTexts()
  const { list, read } = readers[format]
  const turns = body[list]
  if (!Array.isArray(turns)) return null
  const isAnswered = read(turns, texts)
  if (isAnswered && texts.calls === 0) return texts.list
  return texts.calls > 0 && texts.results > 0 ? texts.list : null
}

/** Collects the texts of one turn, within bounds. */
class TurnTexts {
  readonly list: string[] = []
  calls = 0
  results = 0
  #parsedChars = 0

  addCall(name: unknown, given: unknown): void {
    this.calls++
    if (this.list.length >= valuesMax) return
    this.list.push('call')
    this.#add(name, 0)
    this.#add(typeof given === 'string' ? this.#parsed(given) : given, 0)
  }

  addResult(content: unknown): void {
    this.results++
    if (this.list.length >= valuesMax) return
    this.list.push('result')
    this.#add(content, 0)
  }

  #parsed(text: string): unknown {
    if (text.length > argumentsMaxChars || this.#parsedChars + text.length > parsedMaxChars || !text.trimStart().startsWith('{')) return text
    this.#parsedChars += text.length
    try {
      return JSON.parse(text)
    } catch {
      return text
    }
  }

  /** The order of keys does not matter. */
  #add(value: unknown, depth: number): void {
    if (this.list.length >= valuesMax || depth > depthMax) return
    if (typeof value === 'string') this.list.push(value)
    else if (Array.isArray(value)) {
      this.list.push('[')
      for (const each of value) {
        if (this.list.length >= valuesMax) break
        this.#add(each, depth + 1)
      }
      this.list.push(']')
    } else if (isObject(value)) this.#addObject(value, depth)
    else this.list.push(String(value))
  }

  #addObject(value: Body, depth: number): void {
    this.list.push('{')
    const names = Object.keys(value)
    for (const name of names.length > sortedMax ? names : names.sort()) {
      if (this.list.length >= valuesMax) break
      this.list.push(name)
      this.#add(value[name], depth + 1)
    }
    this.list.push('}')
  }
}

/** Reads chat messages, and messages with blocks of tool use and tool results. Returns false when there is no answer of a model. */
function readMessages(messages: readonly unknown[], texts: TurnTexts): boolean {
  let at = messages.length - 1
  while (at >= 0 && !isAssistant(messages[at])) at--
  const last = messages[at]
  if (!isObject(last)) return false
  for (const call of listOf(last['tool_calls'])) {
    const asked = isObject(call) ? (call['function'] ?? call['custom']) : null
    if (isObject(asked)) texts.addCall(asked['name'], asked['arguments'] ?? asked['input'])
  }
  for (const block of listOf(last['content'])) if (isObject(block) && block['type'] === 'tool_use') texts.addCall(block['name'], block['input'])
  if (texts.calls === 0) return true
  for (const message of messages.slice(at + 1)) {
    if (!isObject(message)) continue
    if (message['role'] === 'tool') texts.addResult(message['content'])
    else
      for (const block of listOf(message['content']))
        if (isObject(block) && block['type'] === 'tool_result') texts.addResult([block['content'], block['is_error']])
  }
  return true
}

/** Reads the items of a responses request. They have no turns, so the last turn is the last group of calls with the results after it. Returns as `readMessages` does. */
function readItems(items: readonly unknown[], texts: TurnTexts): boolean {
  const results: unknown[] = []
  const calls: Body[] = []
  for (let at = items.length - 1; at >= 0; at--) {
    const item = items[at]
    if (!isObject(item)) continue
    if (isCall(item['type'])) calls.push(item)
    else if (calls.length > 0) break
    else if (isAssistant(item)) return true
    else if (isOutput(item['type'])) results.push(item['output'])
  }
  for (const item of calls.toReversed()) texts.addCall(item['name'], item['arguments'] ?? item['input'])
  for (const output of results.toReversed()) texts.addResult(output)
  return calls.length > 0
}

/** Reads the contents of a request of Google's format, whose names may have either spelling. Returns as `readMessages` does. */
function readContents(contents: readonly unknown[], texts: TurnTexts): boolean {
  let at = contents.length - 1
  while (at >= 0 && !isOfModel(contents[at])) at--
  const last = contents[at]
  if (!isObject(last)) return false
  for (const part of listOf(last['parts'])) {
    const call = isObject(part) ? (part['functionCall'] ?? part['function_call']) : null
    if (isObject(call)) texts.addCall(call['name'], call['args'])
  }
  if (texts.calls === 0) return true
  for (const content of contents.slice(at + 1))
    for (const part of listOf(isObject(content) ? content['parts'] : null)) {
      const result = isObject(part) ? (part['functionResponse'] ?? part['function_response']) : null
      if (isObject(result)) texts.addResult(result['response'])
    }
  return true
}

/** Where a format has its turns, and how they are read. */
const readers: Readonly<Record<WireFormat, { readonly list: string; read(turns: readonly unknown[], texts: TurnTexts): boolean }>> = {
  openai: { list: 'messages', read: readMessages },
  anthropic: { list: 'messages', read: readMessages },
  'openai-responses': { list: 'input', read: readItems },
  gemini: { list: 'contents', read: readContents },
}

const isOfModel = (content: unknown): boolean => isObject(content) && content['role'] === 'model'

const isAssistant = (message: unknown): boolean => isObject(message) && message['role'] === 'assistant'

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
