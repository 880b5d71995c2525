import type { Ids } from '../../platform/values/ids.ts'
import type { Answer } from '../answer.ts'
import { objectOrNull } from '../exchange.ts'

/** One output item of a simulated response, as a whole and as a stream sends it. */
export interface OutputItem {
  readonly start: Record<string, unknown>
  readonly whole: Record<string, unknown>
  readonly deltas: readonly string[]
  /** The name of its stream events, without the ending `.delta` or `.done`. */
  readonly event: string
  /** The field of the `.done` event that has the whole text. */
  readonly told: string
  /** The fields that say where in the item the deltas belong. */
  readonly place: Record<string, unknown>
  /** The content part to which the deltas belong, if the format has one. */
  readonly part: { readonly event: string; readonly empty: Record<string, unknown>; readonly whole: Record<string, unknown> } | null
}

/** Returns the items of an answer in their order: reasoning and text, or a call. */
export function outputItems(ids: Ids, tools: unknown, answer: Extract<Answer, { kind: 'text' | 'call' }>): readonly OutputItem[] {
  const id = (prefix: string): string => `${prefix}_sandbox_${ids.requestId().slice(4)}`
  if (answer.kind === 'call') return [callOf(id, tools, answer.tool, answer.pieces)]
  const text = messageOf(id('msg'), answer.pieces, answer.cut)
  return answer.reasoning.length === 0 ? [text] : [reasoningOf(id('rs'), answer.reasoning), text]
}

function messageOf(id: string, deltas: readonly string[], cut: boolean): OutputItem {
  const part = { type: 'output_text', text: deltas.join(''), annotations: [] }
  const head = { id, type: 'message', role: 'assistant' }
  return {
    start: { ...head, status: 'in_progress', content: [] },
    whole: { ...head, status: cut ? 'incomplete' : 'completed', content: [part] },
    deltas,
    event: 'response.output_text',
    told: 'text',
    place: { content_index: 0 },
    part: { event: 'response.content_part', empty: { ...part, text: '' }, whole: part },
  }
}

function reasoningOf(id: string, deltas: readonly string[]): OutputItem {
  const part = { type: 'summary_text', text: deltas.join('') }
  return {
    start: { id, type: 'reasoning', summary: [] },
    whole: { id, type: 'reasoning', summary: [part], encrypted_content: 'sandbox' },
    deltas,
    event: 'response.reasoning_summary_text',
    told: 'text',
    place: { summary_index: 0 },
    part: { event: 'response.reasoning_summary_part', empty: { ...part, text: '' }, whole: part },
  }
}

function callOf(id: (prefix: string) => string, tools: unknown, called: string, pieces: readonly string[]): OutputItem {
  const { namespace, name, isCustom } = toolOf(tools, called)
  const call = { call_id: id('call'), ...(namespace === null ? {} : { namespace }), name }
  if (isCustom) {
    const input = String(objectOrNull(JSON.parse(pieces.join('')))?.['input'] ?? '')
    const head = { id: id('ctc'), type: 'custom_tool_call', ...call }
    const event = 'response.custom_tool_call_input'
    return { start: { ...head, input: '' }, whole: { ...head, status: 'completed', input }, deltas: [input], event, told: 'input', place: {}, part: null }
  }
  const head = { id: id('fc'), type: 'function_call', ...call }
  return {
    start: { ...head, status: 'in_progress', arguments: '' },
    whole: { ...head, status: 'completed', arguments: pieces.join('') },
    deltas: pieces,
    event: 'response.function_call_arguments',
    told: 'arguments',
    place: {},
    part: null,
  }
}

function toolOf(tools: unknown, called: string): { readonly namespace: string | null; readonly name: string; readonly isCustom: boolean } {
  const given = (Array.isArray(tools) ? tools : []).map(tool => objectOrNull(tool) ?? {})
  const plain = given.find(tool => tool['type'] !== 'namespace' && tool['name'] === called)
  if (plain !== undefined) return { namespace: null, name: called, isCustom: plain['type'] === 'custom' }
  const space = given.find(tool => tool['type'] === 'namespace' && called.startsWith(`${String(tool['name'])}__`))
  const namespace = space === undefined ? null : String(space['name'])
  return { namespace, name: namespace === null ? called : called.slice(namespace.length + 2), isCustom: false }
}
