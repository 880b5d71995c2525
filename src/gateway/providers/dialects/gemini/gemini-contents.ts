/** Messages of the hub format as `contents` and `systemInstruction` of Gemini. */
import { fail } from '../../../../platform/errors.ts'
import { type JsonObject, objectsOf } from '../../../../platform/values/json.ts'
import { JsonTexts } from '../../../wire/json/json-texts.ts'
import { calledName, calledOf, messagesOf, missingResultText, noteThoughts } from '../hub-messages.ts'
import { textOf } from '../json-values.ts'
import { type Part, partsOf } from './gemini-parts.ts'
import { readCallId, thoughtSignatureOf } from './gemini-signature.ts'

export interface Content {
  readonly role: 'user' | 'model'
  parts: Part[]
}

export interface Contents {
  readonly system: string | null
  readonly contents: readonly Content[]
}

/** What Gemini takes instead of a signature on a call that another model made. Source: its page on thought signatures. */
const unsigned = 'skip_thought_signature_validator'

/**
 * The conversation in contents of alternating roles. Signatures are where Gemini gave them: on the call whose id holds one, and on the last text of a
 * turn. `needsSignatures`: calls of other models are marked as such. Throws `bad_request` for a result that answers no call.
 */
export function contentsOf(messages: unknown, needsSignatures: boolean, dropped: Set<string>): Contents {
  const writer = new ContentWriter(needsSignatures, dropped)
  messagesOf(messages, dropped, { takesMarks: false }).forEach((message, index) => {
    writer.add(message, `messages[${index}]`)
  })
  return writer.end()
}

interface MadeCall {
  readonly id: string
  readonly name: string
  readonly turn: Content
}

class ContentWriter {
  readonly #needsSignatures: boolean
  readonly #dropped: Set<string>
  readonly #system: string[] = []
  readonly #contents: Content[] = []
  /** Names of called functions by the ids that the client knows, and the turn of the call. */
  readonly #calls = new Map<string, MadeCall>()
  readonly #made: MadeCall[] = []
  readonly #answered = new Set<MadeCall>()
  /** The answers to the calls of a turn, by that turn. They begin the next turn. */
  readonly #answers = new Map<Content, { readonly results: Part[]; readonly media: Part[] }>()
  /** The arguments and results of all calls. */
  readonly #texts = new JsonTexts()

  constructor(needsSignatures: boolean, dropped: Set<string>) {
    this.#needsSignatures = needsSignatures
    this.#dropped = dropped
  }

  add(message: JsonObject, at: string): void {
    switch (message['role']) {
      case 'system':
      case 'developer':
        this.#addSystem(partsOf(message['content'], at, this.#dropped))
        return
      case 'assistant':
        this.#addModel(message, at)
        return
      case 'tool':
        this.#addResult(message, at)
        return
      default:
        this.#push('user', partsOf(message['content'], at, this.#dropped))
    }
  }

  #addSystem(parts: readonly Part[]): void {
    for (const part of parts) {
      if (typeof part['text'] === 'string') this.#system.push(part['text'])
      else this.#dropped.add('messages.content.image_url')
    }
  }

  #push(role: Content['role'], parts: readonly Part[]): void {
    if (parts.length === 0) return
    const last = this.#contents.at(-1)
    if (last?.role === role) for (const part of parts) last.parts.push(part)
    else this.#contents.push({ role, parts: [...parts] })
  }

  #addModel(message: JsonObject, at: string): void {
    const refusal = typeof message['refusal'] === 'string' ? partsOf(message['refusal'], at, this.#dropped) : []
    const ownBlocks = objectsOf(message['thinking_blocks']).filter(block => thoughtSignatureOf(block['signature']) !== null).length
    noteThoughts(message, ownBlocks, this.#dropped)
    const said = signed([...partsOf(message['content'], at, this.#dropped), ...refusal], message['thinking_blocks'])
    const given = objectsOf(message['tool_calls'])
    const calls = given.map(call => this.#callPart(call))
    const [first] = calls
    if (this.#needsSignatures && first !== undefined) first['thoughtSignature'] ??= unsigned
    this.#push('model', [...said, ...calls])
    const turn = this.#contents.at(-1)
    if (turn === undefined) return
    for (const call of given) {
      const made = { id: textOf(call['id']), name: calledName(call), turn }
      this.#made.push(made)
      this.#calls.set(made.id, made)
    }
  }

  #callPart(call: JsonObject): Part {
    const { id, thoughtSignature } = readCallId(textOf(call['id']))
    const { name, input } = calledOf(call, this.#texts)
    return { functionCall: { id, name, args: input }, ...(thoughtSignature === null ? {} : { thoughtSignature }) }
  }

  #addResult(message: JsonObject, at: string): void {
    const id = textOf(message['tool_call_id'])
    const call = this.#calls.get(id)
    if (call === undefined)
      throw fail('bad_request', { message: `"${at}.tool_call_id" names no call of an assistant message before it. Send the message with "tool_calls" too.` })
    this.#answered.add(call)
    const parts = partsOf(message['content'], at, this.#dropped)
    const text = parts.map(part => textOf(part['text'])).join('\n')
    const response = this.#texts.object(text) ?? { result: text }
    const media = parts.filter(part => part['text'] === undefined)
    this.#place(call.turn, { functionResponse: { id: readCallId(id).id, name: call.name, response } }, media)
  }

  /**
   * After the other results of the turn, before the pictures and files that came with them. Roles alternate, so the turn after the calls is the user's
   * or is made here.
   */
  #place(calls: Content, result: Part, media: readonly Part[]): void {
    if (this.#contents.at(-1) === calls) this.#contents.push({ role: 'user', parts: [] })
    const answers = this.#answers.get(calls) ?? { results: [], media: [] }
    this.#answers.set(calls, answers)
    answers.results.push(result)
    for (const part of media) answers.media.push(part)
  }

  #addAnswers(): void {
    let calls: Content | null = null
    for (const content of this.#contents) {
      const answers = calls === null ? undefined : this.#answers.get(calls)
      if (answers !== undefined) content.parts = [...answers.results, ...answers.media, ...content.parts]
      calls = content
    }
  }

  end(): Contents {
    const contents = this.#contents
    // As many results as calls are wanted.
    for (const call of this.#made)
      if (!this.#answered.has(call))
        this.#place(call.turn, { functionResponse: { id: readCallId(call.id).id, name: call.name, response: { error: missingResultText } } }, [])
    this.#addAnswers()
    // Something must be asked: what was said as system alone is the prompt then.
    if (contents.length === 0) return { system: null, contents: [{ role: 'user', parts: [{ text: this.#system.join('\n\n') || 'Continue.' }] }] }
    if (contents[0]?.role === 'model') contents.unshift({ role: 'user', parts: [{ text: 'Continue.' }] })
    return { system: this.#system.length === 0 ? null : this.#system.join('\n\n'), contents }
  }
}

/** The signature of the turn's thinking, on its last text, or on an empty text when there is none. Thinking itself is not given back. */
function signed(parts: Part[], blocks: unknown): Part[] {
  const signature = objectsOf(blocks)
    .map(block => thoughtSignatureOf(block['signature']))
    .findLast(found => found !== null)
  if (signature === undefined) return parts
  const last = parts.findLast(part => typeof part['text'] === 'string')
  if (last === undefined) return [...parts, { text: '', thoughtSignature: signature }]
  last['thoughtSignature'] = signature
  return parts
}
