/** Finds the conversation of a call: by the id that its client gives, or else by how the conversation begins. */
import { hash } from 'node:crypto'
import { hashSeed } from '../../../platform/values/hash-seed.ts'
import { isObject } from '../../../platform/values/json.ts'
import type { Conversation } from '../../routing/sticky/conversation.ts'
import type { ParsedRequest } from '../kinds/request.ts'

/** The most characters that are read of the first system text and of the first user text. Our choice. */
const textMaxChars = 2048
/** The most turns in which the first texts and the first answer are searched. */
const turnsMax = 64
/** The longest id of a client. A longer one counts as none. */
const idMaxChars = 256

/** The conversation of a parsed request. The texts of the request are read only when its id is asked for and no client gives one. */
export class CallConversation implements Conversation {
  readonly named: string | null
  readonly #body: ParsedRequest['native']['body']
  #id: string | null | undefined

  /** `header` is the id that a header gives. */
  constructor({ native: { body } }: Pick<ParsedRequest, 'native'>, header: string | undefined) {
    const key = body['prompt_cache_key']
    this.#body = body
    this.named = typeof key === 'string' && key !== '' && key.length <= idMaxChars ? `key:${key}` : header === undefined ? null : `header:${header}`
  }

  id(): string | null {
    if (this.#id === undefined) this.#id = this.named ?? idOfTexts(this.#body)
    return this.#id
  }

  goesOn(): boolean {
    return this.named !== null || isAnswered(turnsOf(this.#body))
  }
}

/** Returns the turns of a request in any of the three formats, or none when the prompt is one text. */
function turnsOf(body: Readonly<Record<string, unknown>>): readonly unknown[] {
  const turns = body['messages'] ?? body['input']
  return Array.isArray(turns) ? turns : noTurns
}

const noTurns: readonly unknown[] = []

function isAnswered(turns: readonly unknown[]): boolean {
  for (let at = 0; at < turns.length && at < turnsMax; at++) {
    const turn = turns[at]
    if (isObject(turn) && (turn['role'] === 'assistant' || turn['type'] === 'function_call')) return true
  }
  return false
}

/** Returns a hash of how a conversation begins, with a seed of this process. No text is kept. Null when a user has said nothing. */
function idOfTexts(body: Readonly<Record<string, unknown>>): string | null {
  const { input } = body
  let system = textOf(body['system'] ?? body['instructions'])
  let user = typeof input === 'string' ? input.slice(0, textMaxChars) : ''
  const turns = turnsOf(body)
  for (let at = 0; at < turns.length && at < turnsMax && user === ''; at++) {
    const turn = turns[at]
    if (!isObject(turn)) continue
    const { role, content } = turn
    if (role === 'user') user = textOf(content)
    else if (system === '' && (role === 'system' || role === 'developer')) system = textOf(content)
  }
  return user === '' ? null : `text:${hash('sha256', `${hashSeed} ${system.length} ${system}${user}`, 'base64')}`
}

/** Returns the beginning of the text of a content: a string, or parts with texts. */
function textOf(content: unknown): string {
  if (typeof content === 'string') return content.slice(0, textMaxChars)
  if (!Array.isArray(content)) return ''
  let text = ''
  for (const part of content.slice(0, turnsMax)) {
    if (isObject(part) && typeof part['text'] === 'string') text += part['text'].slice(0, textMaxChars - text.length)
    if (text.length >= textMaxChars) break
  }
  return text
}
