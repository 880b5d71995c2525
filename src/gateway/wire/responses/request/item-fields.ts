/** Fields of items, parts and tools of the Responses API that no other format has. */
import { type JsonObject, objectsOf } from '../../../../platform/values/json.ts'

/** Fields of items that are not reported as lost: the translation reads them, or they only describe how an item was stored. */
const ofItems: ReadonlySet<string> = new Set(
  [
    ['type', 'role', 'content', 'id', 'status', 'call_id', 'name', 'namespace', 'arguments', 'input', 'output', 'execution', 'tools', 'created_by'],
    ['summary', 'encrypted_content'],
  ].flat(),
)
const ofParts: ReadonlySet<string> = new Set(
  ['type', 'text', 'refusal', 'logprobs', 'image_url', 'file_id', 'file_data', 'file_url', 'filename', 'input_audio', 'cache_control'].flat(),
)
const ofTools: ReadonlySet<string> = new Set(['type', 'name', 'description', 'parameters', 'strict', 'format', 'tools', 'execution', 'cache_control'])

/** Adds to `lost` the names of fields in items and tools that the translation does not carry. */
export function noteItemFields({ input, tools }: JsonObject, lost: Set<string>): void {
  for (const item of objectsOf(input)) {
    note(item, ofItems, 'input', lost)
    for (const part of [...objectsOf(item['content']), ...objectsOf(item['output'])]) {
      // The detail of an image is carried; the detail of other parts is not.
      const { detail, ...others } = part
      note(part['type'] === 'input_image' ? others : part, ofParts, 'input.content', lost)
      if (part['type'] === 'input_image' && detail !== undefined && typeof detail !== 'string') lost.add('input.content.detail')
    }
  }
  const loaded = objectsOf(input).flatMap(item => objectsOf(item['tools']))
  noteToolFields([...objectsOf(tools), ...loaded], lost)
}

function noteToolFields(tools: readonly JsonObject[], lost: Set<string>): void {
  for (const tool of tools) {
    if (tool['type'] !== 'function' && tool['type'] !== 'custom' && tool['type'] !== 'namespace') continue
    note(tool, ofTools, 'tools', lost)
    noteToolFields(objectsOf(tool['tools']), lost)
  }
}

function note(holder: JsonObject, known: ReadonlySet<string>, at: string, lost: Set<string>): void {
  for (const [name, value] of Object.entries(holder)) if (!known.has(name) && !saysNothing(name, value)) lost.add(`${at}.${name}`)
}

function saysNothing(name: string, value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === 'auto') return true
  if (Array.isArray(value)) return value.length === 0
  return name === 'caller' && typeof value === 'object' && 'type' in value && value.type === 'direct'
}
