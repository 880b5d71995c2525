/** Translates messages of the hub format to `system` and `messages` of the messages format. */
import { fail } from '../../../../platform/errors.ts'
import { type JsonObject, objectsOf } from '../../../../platform/values/json.ts'
import { JsonTexts } from '../../../wire/json/json-texts.ts'
import { foreignSignature, readCallId } from '../gemini/gemini-signature.ts'
import { calledOf, messagesOf, missingResultText, noteThoughts } from '../hub-messages.ts'
import { textOf } from '../json-values.ts'
import { type Block, blocksOf, withCacheControl } from './anthropic-blocks.ts'

export interface Turn {
  readonly role: 'user' | 'assistant'
  content: Block[]
}

export interface Turns {
  /** Text, or blocks when a part has a cache mark. Undefined when there is no system text. */
  readonly system: string | Block[] | undefined
  readonly turns: readonly Turn[]
  /** The names of the functions that were called in these turns. */
  readonly calledNames: readonly string[]
  /**
   * True when the conversation ends inside a series of calls whose last assistant turn does not begin with thinking. With a thinking budget, the
   * format requires that it does.
   */
  readonly callsWithoutThinking: boolean
}

/** Longest id of a call. Providers make ids of about 30 characters, but a caller can send millions. */
const idMaxChars = 256
/** The first user turn of a request that has none. The provider requires one. */
const opening: Block = { type: 'text', text: 'Continue.' }

/**
 * Returns the conversation in turns of alternating roles. System and developer texts are joined. The results of calls begin the next turn. A call
 * without a result gets an error as its result. Call ids are made unique. Throws `bad_request` for a result without a call, and for invalid parts.
 */
export function turnsOf(messages: unknown, dropped: Set<string>): Turns {
  const writer = new TurnWriter(dropped)
  messagesOf(messages, dropped, { takesMarks: true }).forEach((message, index) => {
    writer.add(message, `messages[${index}]`)
  })
  return writer.end()
}

/** The turn that contains a call, and the call's id at the provider. */
interface MadeCall {
  readonly turn: Turn
  readonly id: string
}

class TurnWriter {
  readonly #dropped: Set<string>
  readonly #system: Block[] = []
  readonly #turns: Turn[] = []
  readonly #names = new Set<string>()
  /** The calls by the client's ids. Of two calls with one id, the later one counts. */
  readonly #calls = new Map<string, MadeCall>()
  readonly #made: MadeCall[] = []
  /** The results by the turn of their calls. The results begin the next turn. */
  readonly #results = new Map<Turn, Block[]>()
  /** The JSON texts of the arguments of all calls. */
  readonly #texts = new JsonTexts()
  readonly #ids = new Set<string>()
  /** The next number that makes an id unique, by the id without a number. */
  readonly #nextNumbers = new Map<string, number>()
  readonly #answered = new Set<string>()

  constructor(dropped: Set<string>) {
    this.#dropped = dropped
  }

  add(message: JsonObject, at: string): void {
    switch (message['role']) {
      case 'system':
      case 'developer':
        this.#addSystem(blocksOf(message['content'], at, this.#dropped))
        return
      case 'assistant':
        this.#addAssistant(message, at)
        return
      case 'tool':
        this.#addResult(message, at)
        return
      default:
        this.#push('user', blocksOf(message['content'], at, this.#dropped))
    }
  }

  /** Adds system text. The format allows only text in `system`. */
  #addSystem(blocks: readonly Block[]): void {
    for (const block of blocks) {
      if (block['type'] === 'text') this.#system.push(block)
      else this.#dropped.add(`messages.content.${textOf(block['type'])}`)
    }
  }

  #push(role: Turn['role'], content: Block[]): void {
    if (content.length === 0) return
    const last = this.#turns.at(-1)
    if (last?.role === role) for (const block of content) last.content.push(block)
    else this.#turns.push({ role, content })
  }

  #addAssistant(message: JsonObject, at: string): void {
    const calls = objectsOf(message['tool_calls']).map(call => ({ given: textOf(call['id']), block: this.#callBlock(call) }))
    const refusal = typeof message['refusal'] === 'string' ? blocksOf(message['refusal'], at, this.#dropped) : []
    const thoughts = thinkingBlocks(message['thinking_blocks'])
    noteThoughts(message, thoughts.length, this.#dropped)
    const said = [...thoughts, ...blocksOf(message['content'], at, this.#dropped), ...refusal]
    this.#push('assistant', [...said, ...calls.map(({ block }) => block)])
    const turn = this.#turns.at(-1)
    if (turn === undefined) return
    for (const { given, block } of calls) {
      const call = { turn, id: textOf(block['id']) }
      this.#made.push(call)
      this.#calls.set(given, call)
    }
  }

  #callBlock(call: JsonObject): Block {
    const { name, input } = calledOf(call, this.#texts)
    this.#names.add(name)
    return withCacheControl({ type: 'tool_use', id: this.#uniqueId(textOf(call['id'])), name, input }, call)
  }

  /** Returns a unique id. The format accepts letters, digits, _ and -, and each id once. */
  #uniqueId(id: string): string {
    const plain =
      readCallId(id)
        .id.slice(0, idMaxChars)
        .replace(/[^a-zA-Z0-9_-]/g, '_') || 'call'
    let number = this.#nextNumbers.get(plain) ?? 2
    let unique = plain
    while (this.#ids.has(unique)) unique = `${plain}_${number++}`
    this.#nextNumbers.set(plain, number)
    this.#ids.add(unique)
    return unique
  }

  #addResult(message: JsonObject, at: string): void {
    const call = this.#calls.get(textOf(message['tool_call_id']))
    if (call === undefined)
      throw fail('bad_request', { message: `"${at}.tool_call_id" names no call of an assistant message before it. Send the message with "tool_calls" too.` })
    if (this.#answered.has(call.id)) throw fail('bad_request', { message: `"${at}.tool_call_id" was answered by an earlier message already.` })
    this.#answered.add(call.id)
    const content = blocksOf(message['content'], at, this.#dropped)
    this.#place(call.turn, withCacheControl({ type: 'tool_result', tool_use_id: call.id, ...(content.length === 0 ? {} : { content }) }, message))
  }

  /**
   * Adds a result after the other results of the turn. Roles alternate, so the turn after the calls is a user turn. This creates the user turn if it
   * is missing.
   */
  #place(calls: Turn, result: Block): void {
    if (this.#turns.at(-1) === calls) this.#turns.push({ role: 'user', content: [] })
    const results = this.#results.get(calls)
    if (results === undefined) this.#results.set(calls, [result])
    else results.push(result)
  }

  #addResults(): void {
    let calls: Turn | null = null
    for (const turn of this.#turns) {
      const results = calls === null ? undefined : this.#results.get(calls)
      if (results !== undefined) turn.content = [...results, ...turn.content]
      calls = turn
    }
  }

  end(): Turns {
    for (const { turn, id } of this.#made) if (!this.#answered.has(id)) this.#place(turn, missingResult(id))
    this.#addResults()
    const turns = this.#turns
    // The format requires a user turn first. A conversation that consists only of system texts becomes the prompt.
    if (turns.length === 0) turns.push({ role: 'user', content: this.#system.length > 0 ? this.#system.splice(0) : [opening] })
    else if (turns[0]?.role === 'assistant') turns.unshift({ role: 'user', content: [opening] })
    trimEnd(turns.at(-1))
    return { system: systemOf(this.#system), turns, calledNames: [...this.#names], callsWithoutThinking: callsWithoutThinking(turns) }
  }
}

const missingResult = (id: string): Block => ({ type: 'tool_result', tool_use_id: id, is_error: true, content: missingResultText })

/** Returns the thinking blocks, unchanged. Thinking that is unsigned, or signed by another provider, is left out, because the format refuses it. */
function thinkingBlocks(blocks: unknown): Block[] {
  return objectsOf(blocks).filter(({ type, signature, data }) =>
    type === 'redacted_thinking'
      ? typeof data === 'string'
      : type === 'thinking' && typeof signature === 'string' && signature !== '' && !foreignSignature(signature),
  )
}

function systemOf(blocks: Block[]): Turns['system'] {
  if (blocks.length === 0) return undefined
  if (blocks.some(block => 'cache_control' in block)) return blocks
  return blocks.map(block => textOf(block['text'])).join('\n\n')
}

/** Removes white space at the end of an assistant turn that the model must continue. The format refuses such white space. */
function trimEnd(last: Turn | undefined): void {
  const block = last?.role === 'assistant' ? last.content.at(-1) : undefined
  if (block?.['type'] === 'text') block['text'] = textOf(block['text']).trimEnd()
}

function callsWithoutThinking(turns: readonly Turn[]): boolean {
  const last = turns.at(-1)
  if (!last?.content.some(block => block['type'] === 'tool_result')) return false
  const first = turns.findLast(turn => turn.role === 'assistant')?.content[0]?.['type']
  return first !== 'thinking' && first !== 'redacted_thinking'
}
