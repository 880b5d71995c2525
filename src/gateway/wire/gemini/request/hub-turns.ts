/** Translates the contents of a request to messages of the hub format. */
import { isObject, type JsonObject, objectsOf } from '../../../../platform/values/json.ts'
import { JsonTexts } from '../../json/json-texts.ts'
import type { ToolNames } from '../../messages/tool-names.ts'
import type { Thinking } from '../../responses/reasoning.ts'
import { fieldOf, objectAt, textAt } from '../fields.ts'
import { isPackedSignature, readSignature } from '../signatures.ts'
import { bad, type HubPart, hubPartsOf, kindOf } from './hub-parts.ts'

/** The state that all parts of one translation share. */
export interface HubContext {
  readonly names: ToolNames
  /** Notes a field that the hub format cannot carry. */
  drop(name: string): void
}

/** One turn: adjacent contents of the same role together, each part with its place in the request. */
interface Turn {
  readonly isModel: boolean
  readonly parts: { readonly part: JsonObject; readonly at: string }[]
}

/** A call that the next turn has to answer. `given` is the id that the client knows, or '' when it knows none. */
interface OpenCall {
  readonly id: string
  readonly given: string
  readonly name: string
  isAnswered: boolean
}

/** Returns the system instruction and all turns, in their order. Throws `bad_request` that names the place. */
export function hubMessagesOf(body: JsonObject, context: HubContext): readonly JsonObject[] {
  const system = systemText(fieldOf(body, 'systemInstruction'), context)
  const writer = new TurnWriter(context)
  for (const turn of turnsOf(body['contents'])) writer.add(turn)
  const messages = writer.end()
  return system === '' ? messages : [{ role: 'system', content: system }, ...messages]
}

function systemText(content: unknown, { drop }: HubContext): string {
  if (content === undefined || content === null) return ''
  if (typeof content === 'string') return content
  if (!isObject(content)) throw bad('"systemInstruction" must be a content with parts.')
  const texts = objectsOf(content['parts']).flatMap((part, index) => {
    const kind = kindOf(part, `systemInstruction.parts[${index}]`, drop)
    if (kind === 'text') return textAt(part, 'text')
    drop(`systemInstruction.parts.${kind}`)
    return []
  })
  return texts.filter(text => text !== '').join('\n\n')
}

function turnsOf(contents: unknown): readonly Turn[] {
  const turns: Turn[] = []
  for (const [index, content] of (Array.isArray(contents) ? contents : []).entries()) {
    const at = `contents[${index}]`
    if (!isObject(content)) throw bad(`"${at}" must be an object.`)
    const { role, parts } = content
    if (role !== undefined && role !== null && role !== '' && role !== 'user' && role !== 'model' && role !== 'function')
      throw bad(`"${at}.role" must be "user" or "model".`)
    if (parts !== undefined && parts !== null && !Array.isArray(parts)) throw bad(`"${at}.parts" must be an array of parts.`)
    const given = (parts ?? []).map((part: unknown, place: number) => {
      if (!isObject(part)) throw bad(`"${at}.parts[${place}]" must be an object.`)
      return { part, at: `${at}.parts[${place}]` }
    })
    // A turn without content is left out, so the turns before and after it become one turn.
    if (given.length === 0) continue
    const isModel = role === 'model'
    const last = turns.at(-1)
    if (last?.isModel === isModel) last.parts.push(...given)
    else turns.push({ isModel, parts: given })
  }
  return turns
}

class TurnWriter {
  readonly #context: HubContext
  readonly #messages: JsonObject[] = []
  readonly #texts = new JsonTexts()
  #open: OpenCall[] = []
  #made = 0

  constructor(context: HubContext) {
    this.#context = context
  }

  add(turn: Turn): void {
    if (turn.isModel) this.#addModel(turn)
    else this.#addUser(turn)
  }

  end(): readonly JsonObject[] {
    this.#refuseOpen()
    return this.#messages
  }

  #refuseOpen(): void {
    const missing = this.#open.find(call => !call.isAnswered)
    if (missing !== undefined)
      throw bad(`"contents" has a functionCall of "${missing.name.slice(0, 100)}" and no functionResponse for it in the turn after it.`)
    this.#open = []
  }

  /** Results come first, because the hub format requires them directly after their calls. Their media come later, with the rest of the turn. */
  #addUser({ parts }: Turn): void {
    const results: JsonObject[] = []
    const said: HubPart[] = []
    for (const { part, at } of parts) {
      const response = fieldOf(part, 'functionResponse')
      if (isObject(response)) results.push(this.#result(response, `${at}.functionResponse`, said))
      else said.push(...hubPartsOf(part, at, this.#context.drop))
    }
    this.#refuseOpen()
    this.#messages.push(...results)
    const [only] = said
    if (only !== undefined) this.#messages.push({ role: 'user', content: said.length === 1 && only['type'] === 'text' ? only['text'] : said })
  }

  #result(response: JsonObject, at: string, media: HubPart[]): JsonObject {
    const id = textAt(response, 'id')
    const name = textAt(response, 'name')
    const call = this.#open.find(each => !each.isAnswered && (id !== '' && each.given !== '' ? each.given === id : each.name === name))
    if (call === undefined) throw bad(`"${at}" answers no functionCall of the turn before it.`)
    call.isAnswered = true
    for (const field of ['willContinue', 'scheduling'])
      if (fieldOf(response, field) !== undefined) this.#context.drop(`contents.parts.functionResponse.${field}`)
    for (const [index, part] of objectsOf(response['parts']).entries()) media.push(...hubPartsOf(part, `${at}.parts[${index}]`, this.#context.drop))
    return { role: 'tool', tool_call_id: call.id, content: resultText(response['response']) }
  }

  #addModel({ parts }: Turn): void {
    this.#refuseOpen()
    const texts: string[] = []
    const thoughts: string[] = []
    const calls: JsonObject[] = []
    let thinking: Thinking | null = null
    for (const { part, at } of parts) {
      thinking = this.#thinkingOf(part) ?? thinking
      const kind = kindOf(part, at, this.#context.drop)
      if (kind === 'text') (part['thought'] === true ? thoughts : texts).push(textAt(part, 'text'))
      else if (kind === 'functionCall') calls.push(this.#call(objectAt(part, 'functionCall'), `${at}.functionCall`))
      // The part shows what a tool of the original provider did, or a picture that the model made. No other provider can use it.
      else this.#context.drop(`contents.parts.${kind}`)
    }
    const text = texts.join('')
    if (text === '' && calls.length === 0) return
    const reasoning = thinking?.text ?? thoughts.join('')
    this.#messages.push({
      role: 'assistant',
      content: text === '' ? null : text,
      ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
      ...(thinking === null || thinking.blocks.length === 0 ? {} : { thinking_blocks: thinking.blocks }),
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
    })
  }

  /** Returns the thinking that this gateway has packed into the signature of a part. Only Google can use a signature of Google. */
  #thinkingOf(part: JsonObject): Thinking | null {
    const signature = textAt(part, 'thoughtSignature')
    if (signature === '') return null
    const read = isPackedSignature(signature) ? readSignature(signature, this.#texts) : null
    if (read === null) this.#context.drop('contents.parts.thoughtSignature')
    return read
  }

  #call(call: JsonObject, at: string): JsonObject {
    const name = textAt(call, 'name')
    if (name === '') throw bad(`"${at}.name" must name a function.`)
    const given = textAt(call, 'id')
    // The same conversation gets the same ids in every turn, so the provider's cache of the prompt stays valid.
    const id = given === '' ? `call_${this.#made}` : given
    this.#made++
    this.#open.push({ id, given, name, isAnswered: false })
    const args = call['args']
    return { id, type: 'function', function: { name: this.#context.names.toUpstream(name), arguments: JSON.stringify(isObject(args) ? args : {}) } }
  }
}

/** Returns the text of a result. An object with one text, under the names that clients use for the whole result, is this text. */
function resultText(response: unknown): string {
  if (!isObject(response)) return typeof response === 'string' ? response : ''
  const names = Object.keys(response)
  const [only] = names
  const value = only === undefined ? undefined : response[only]
  if (names.length === 1 && typeof value === 'string' && (only === 'output' || only === 'result')) return value
  return JSON.stringify(response)
}
