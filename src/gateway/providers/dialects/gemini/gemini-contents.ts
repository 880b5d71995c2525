/** Translates messages of the hub format to `contents` and `systemInstruction` of Gemini. */
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

/** The value that Gemini accepts in place of a signature for a call by another model. Source: its page on thought signatures. */
export const unsigned = 'skip_thought_signature_validator'

/**
 * Returns the conversation as contents of alternating roles. Signatures are where Gemini put them: on the call whose id contains one, and on the last
 * text of a turn. With `needsSignatures`, calls by other models are marked as such. Throws `bad_request` for a result without a call.
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
  /** The called functions by the ids that the client knows, with the turn of each call. */
  readonly #calls = new Map<string, MadeCall>()
  readonly #made: MadeCall[] = []
  readonly #answered = new Set<MadeCall>()
  /** The answers to the calls of a turn, by that turn. The answers begin the next turn. */
  readonly #answers = new Map<Content, { readonly results: Part[]; readonly media: Part[] }>()
  /** The JSON texts of the arguments and results of all calls. */
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
   * Adds a result after the other results of the turn, and before the pictures and files of these results. Roles alternate, so the turn after the
   * calls is a user turn. This creates the user turn if it is missing.
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
    // Gemini requires as many results as calls.
    for (const call of this.#made)
      if (!this.#answered.has(call))
        this.#place(call.turn, { functionResponse: { id: readCallId(call.id).id, name: call.name, response: { error: missingResultText } } }, [])
    this.#addAnswers()
    // Gemini requires a user turn. A conversation that consists only of system texts becomes the prompt.
    if (contents.length === 0) return { system: null, contents: [{ role: 'user', parts: [{ text: this.#system.join('\n\n') || 'Continue.' }] }] }
    if (contents[0]?.role === 'model') contents.unshift({ role: 'user', parts: [{ text: 'Continue.' }] })
    return { system: this.#system.length === 0 ? null : this.#system.join('\n\n'), contents }
  }
}

/** Puts the signature of the turn's thinking on its last text, or on an empty text if the turn has no text. The thinking itself is not sent back. */
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
