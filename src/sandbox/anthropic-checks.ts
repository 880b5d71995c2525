import { objectOrNull } from './exchange.ts'

const objectsOf = (value: unknown): Record<string, unknown>[] => (Array.isArray(value) ? value.map(objectOrNull).filter(item => item !== null) : [])

/** Returns the error that the real API would give for a request, in similar words. Returns null when the real API would accept the request. */
export function messagesFault(body: Record<string, unknown>): string | null {
  return samplingFault(body) ?? thinkingFault(body) ?? turnsFault(objectsOf(body['messages']))
}

function samplingFault({ temperature, stop_sequences: stops }: Record<string, unknown>): string | null {
  if (typeof temperature === 'number' && (temperature < 0 || temperature > 1)) return 'temperature: must be between 0 and 1'
  if (Array.isArray(stops) && stops.some(text => typeof text !== 'string' || text.trim() === ''))
    return 'stop_sequences: each stop sequence must contain non-whitespace'
  return null
}

function thinkingFault(body: Record<string, unknown>): string | null {
  const thinking = objectOrNull(body['thinking'])
  if (thinking?.['type'] !== 'enabled') return null
  const budget = thinking['budget_tokens']
  if (typeof budget !== 'number' || budget < 1024) return 'thinking.enabled.budget_tokens: must be at least 1024'
  if (budget >= Number(body['max_tokens'])) return '`max_tokens` must be greater than `thinking.budget_tokens`.'
  if (body['temperature'] !== undefined && body['temperature'] !== 1) return '`temperature` may only be set to 1 when thinking is enabled.'
  const choice = objectOrNull(body['tool_choice'])?.['type']
  return choice === 'any' || choice === 'tool' ? 'Thinking may not be enabled when tool_choice forces tool use.' : null
}

/** Checks that every call has its result in the next turn, that every result has its call in the previous turn, and that no text is blank. */
function turnsFault(messages: readonly Record<string, unknown>[]): string | null {
  let open: unknown[] = []
  for (const [index, { role, content }] of messages.entries()) {
    const blocks = objectsOf(content)
    if (blocks.some(block => block['type'] === 'text' && String(block['text']).trim() === ''))
      return `messages.${index}: text content blocks must contain non-whitespace text`
    const results = blocks.filter(block => block['type'] === 'tool_result').map(block => block['tool_use_id'])
    const missing = open.find(id => !results.includes(id))
    if (missing !== undefined) return `messages.${index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${String(missing)}.`
    const unasked = results.find(id => !open.includes(id))
    if (unasked !== undefined) return `messages.${index}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${String(unasked)}.`
    if (blocks.some(block => block['type'] === 'thinking' && block['signature'] !== sandboxSignature))
      return `messages.${index}: Invalid \`signature\` in \`thinking\` block`
    open = role === 'assistant' ? blocks.filter(block => block['type'] === 'tool_use').map(block => block['id']) : []
  }
  return open.length === 0 ? null : '`tool_use` ids were found without `tool_result` blocks at the end.'
}

/** The signature of the thinking blocks that the sandbox returns. */
export const sandboxSignature = 'sandbox'
