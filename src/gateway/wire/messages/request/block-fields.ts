/** Fields of blocks and messages that no other format has. */

type Fields = Readonly<Record<string, unknown>>

const fieldsByType: Readonly<Record<string, readonly string[]>> = {
  text: ['text', 'citations'],
  image: ['source'],
  document: ['source', 'citations', 'context', 'title'],
  search_result: ['source', 'title', 'content', 'citations'],
  tool_result: ['tool_use_id', 'content', 'is_error'],
  tool_use: ['id', 'name', 'input'],
}

/** Notes the unknown fields of a block. Blocks whose type is not in the list above are noted or refused as a whole elsewhere. */
export function noteBlockFields(block: Fields, drop: (name: string) => void): void {
  const known = fieldsByType[String(block['type'])]
  if (known === undefined) return
  for (const [name, value] of Object.entries(block))
    if (name !== 'type' && name !== 'cache_control' && !known.includes(name) && !saysNothing(name, value)) drop(`messages.content.${name}`)
}

/** Notes the fields of a message other than its role and content. */
export function noteMessageFields(message: Fields, drop: (name: string) => void): void {
  for (const [name, value] of Object.entries(message)) if (name !== 'role' && name !== 'content' && !saysNothing(name, value)) drop(`messages.${name}`)
}

/** Whether a field may be dropped without a note. A call by the model itself ("direct") is the only kind in other formats. */
function saysNothing(name: string, value: unknown): boolean {
  if (value === undefined || value === null || value === false) return true
  return name === 'caller' && typeof value === 'object' && 'type' in value && value.type === 'direct'
}
