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

/** Reports the unknown fields of a block as dropped. A block whose type is not in the list above is reported or refused as a whole elsewhere. */
export function noteBlockFields(block: Fields, drop: (name: string) => void): void {
  const known = fieldsByType[String(block['type'])]
  if (known === undefined) return
  for (const [name, value] of Object.entries(block))
    if (name !== 'type' && name !== 'cache_control' && !known.includes(name) && !saysNothing(name, value)) drop(`messages.content.${name}`)
}

/** Reports the fields of a message other than its role and content as dropped. */
export function noteMessageFields(message: Fields, drop: (name: string) => void): void {
  for (const [name, value] of Object.entries(message)) if (name !== 'role' && name !== 'content' && !saysNothing(name, value)) drop(`messages.${name}`)
}

/**
 * Returns whether a field can be dropped without a report. The caller "direct" means that the model itself made the call, which is the only kind of call in
 * other formats.
 */
function saysNothing(name: string, value: unknown): boolean {
  if (value === undefined || value === null || value === false) return true
  return name === 'caller' && typeof value === 'object' && 'type' in value && value.type === 'direct'
}
