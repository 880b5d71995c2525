/** Moves the thinking of a streamed chat to the member `reasoning_content`. Only the bytes of the delta change. */
import { isObject, type JsonObject, parsedObject } from '../../../platform/values/json.ts'
import { isBoundedJson } from '../json/json-bounds.ts'
import { editMembers, elementsAt, type JsonMember, topLevelMembers } from '../json/json-members.ts'
import { answerOf, isThinking, thinkingIn } from './chat-reply.ts'

/** A range of bytes and the bytes that replace it. */
export interface ByteEdit {
  readonly from: number
  readonly to: number
  readonly bytes: Uint8Array
}

/** A chunk with more choices is passed on unchanged, because each choice is edited separately. No request needs this many. */
const choicesMax = 128
const none: readonly ByteEdit[] = Object.freeze([])
const places = ['delta', 'message'] as const

/**
 * Returns the edits that move the thinking of one chunk, the JSON in `bytes[start, end)`, to `reasoning_content`. The list is empty if the thinking is there
 * already. `reasoning` becomes `reasoning_content`, or is removed if the same delta has both. If the content is a list, the thinking parts of
 * the list move to `reasoning_content` too.
 */
export function reasoningEdits(bytes: Uint8Array, start: number, end: number): readonly ByteEdit[] {
  const json = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start)
  const chunk = isBoundedJson(json, 0, json.length) ? parsedObject(json.toString('utf8')) : null
  const choices = chunk?.['choices']
  if (!Array.isArray(choices) || choices.length > choicesMax) return none
  const list = memberOf(json, 'choices')
  if (list === undefined) return none
  const edits: ByteEdit[] = []
  for (const [index, element] of elementsAt(json, list.valueStart).entries()) {
    const choice: unknown = choices[index]
    if (!isObject(choice)) continue
    const within = json.subarray(element.start, element.end)
    for (const place of places) {
      const delta = choice[place]
      const changes = isObject(delta) ? changesOf(delta) : null
      const member = changes === null ? undefined : memberOf(within, place)
      if (changes === null || member === undefined) continue
      const from = start + element.start + member.valueStart
      edits.push({ from, to: start + element.start + member.end, bytes: editMembers(within.subarray(member.valueStart, member.end), changes) })
    }
  }
  return edits.sort((a, b) => a.from - b.from)
}

/** Returns the last of the members with equal names, because that one counts. */
const memberOf = (bytes: Buffer, name: string): JsonMember | undefined => topLevelMembers(bytes).findLast(member => member.name === name)

/** Returns the changes of a delta: the new JSON text of each member by name, or undefined to remove the member. Returns null if nothing has to change. */
function changesOf(delta: JsonObject): ReadonlyMap<string, string | undefined> | null {
  const { reasoning, reasoning_content: named, content } = delta
  const parts: readonly unknown[] = Array.isArray(content) && content.some(isThinking) ? content : []
  const isOdd = typeof reasoning === 'string' && reasoning !== ''
  if (!isOdd && parts.length === 0) return null
  const thought = [named, reasoning, parts.map(thinkingIn).join('')].find(text => typeof text === 'string' && text !== '')
  const changes = new Map<string, string | undefined>()
  if (isOdd) changes.set('reasoning', undefined)
  if (thought !== named) changes.set('reasoning_content', JSON.stringify(thought))
  if (parts.length > 0) changes.set('content', answerText(parts))
  return changes
}

/** Returns the content without its thinking. If there is only thinking, the content is removed instead of being left empty. */
function answerText(parts: readonly unknown[]): string | undefined {
  const answer = answerOf(parts)
  return answer === '' ? undefined : JSON.stringify(answer)
}
