/** Translates a chat request of the hub format to a body of the messages format. */

import { isObject, type JsonObject } from '../../../../platform/values/json.ts'
import type { HubRequest, Target } from '../../dialect.ts'
import { isAbsent } from '../json-values.ts'
import { nameStreamOptions, nameUncarried } from '../uncarried.ts'
import { type ReplyForm, replyFormOf } from './anthropic-format.ts'
import { thinkingOf } from './anthropic-thinking.ts'
import { toolsOf } from './anthropic-tools.ts'
import { type Turns, turnsOf } from './anthropic-turns.ts'
import { abilitiesOf, type ClaudeAbilities } from './claude-version.ts'

/** The limit of output tokens when neither the caller nor the catalog gives one. The format requires a limit. */
const maxTokensDefault = 4096

/** Fields that are translated, or that have no meaning in this format. */
const carried: ReadonlySet<string> = new Set(
  [
    ['model', 'messages', 'max_tokens', 'max_completion_tokens', 'stream', 'stream_options', 'temperature', 'top_p', 'top_k', 'stop', 'tools', 'tool_choice'],
    ['parallel_tool_calls', 'response_format', 'reasoning_effort', 'thinking', 'user', 'safety_identifier', 'service_tier', 'cache_control'],
  ].flat(),
)

/**
 * Returns the body for the target, and the names of the fields that the body cannot express. With `hasFormat` false, the provider takes no schema for
 * the reply. Throws `bad_request` that names the invalid part.
 */
export function messagesBody(
  { body, stream }: HubRequest,
  { upstreamModel, traits }: Target,
  hasFormat = true,
): { body: Record<string, unknown>; dropped: readonly string[] } {
  const dropped = new Set<string>()
  nameUncarried(body, carried, dropped)
  nameStreamOptions(body, dropped)
  const known = abilitiesOf(upstreamModel, traits)
  const abilities = hasFormat ? known : { ...known, outputFormat: false }
  const maxTokens = lowerOf(body['max_tokens'], body['max_completion_tokens']) ?? traits.maxOutputTokens ?? maxTokensDefault
  const turns = turnsOf(body['messages'], dropped)
  const { tools, choice, forces } = toolsOf(body, turns.calledNames, dropped)
  const { callsWithoutThinking } = turns
  const thinking = thinkingOf({ body, traits, abilities, maxTokens, forcesTool: forces, callsWithoutThinking })
  if (thinking.dropped !== null) dropped.add(thinking.dropped)
  const form = replyFormOf(body, { abilities, hasTools: tools.length > 0, thinks: thinking.on || traits.alwaysThinks }, dropped)
  const written: Record<string, unknown> = {
    model: upstreamModel,
    max_tokens: maxTokens,
    ...systemField(turns.system, form),
    messages: turns.turns,
    ...samplingFields(body, abilities, thinking.on, dropped),
    ...stopField(body['stop'], dropped),
    ...(tools.length === 0 ? {} : { tools }),
    ...(choice === undefined ? {} : { tool_choice: choice }),
    ...(form.kind === 'tool' ? { tools: [form.tool], tool_choice: { type: 'tool', name: form.tool['name'] } } : {}),
    ...thinking.fields,
    ...callerFields(body, dropped),
    ...(isObject(body['cache_control']) ? { cache_control: body['cache_control'] } : {}),
    ...(stream ? { stream: true } : {}),
  }
  if (form.kind === 'native') written['output_config'] = { ...(isObject(written['output_config']) ? written['output_config'] : {}), format: form.format }
  return { body: written, dropped: [...dropped] }
}

function lowerOf(a: unknown, b: unknown): number | null {
  const given = [a, b].filter(value => typeof value === 'number')
  return given.length === 0 ? null : Math.min(...given)
}

function systemField(system: Turns['system'], form: ReplyForm): Record<string, unknown> {
  if (form.kind !== 'told') return system === undefined ? {} : { system }
  if (Array.isArray(system)) return { system: [...system, { type: 'text', text: form.sentence }] }
  return { system: system === undefined ? form.sentence : `${system}\n\n${form.sentence}` }
}

/**
 * Returns the sampling options. The format accepts temperatures up to 1, and no temperature together with thinking. It refuses two sampling options
 * together. Its newest models refuse all sampling options.
 */
function samplingFields(body: JsonObject, abilities: ClaudeAbilities, thinks: boolean, dropped: Set<string>): Record<string, unknown> {
  const fields: Record<string, unknown> = {}
  const isGiven = (name: string): boolean => typeof body[name] === 'number'
  for (const name of ['temperature', 'top_p', 'top_k']) {
    if (!isGiven(name)) continue
    const value = Number(body[name])
    if (mayCarry(name, value)) fields[name] = name === 'temperature' ? Math.min(1, Math.max(0, value)) : value
    else if (!isNeutral(name, value)) dropped.add(name)
  }
  return fields

  function mayCarry(name: string, value: number): boolean {
    if (!abilities.sampling) return false
    if (name === 'top_p' && isGiven('temperature') && !thinks && !abilities.temperatureWithTopP) return false
    return !thinks || (name === 'top_p' && value >= 0.95)
  }
}

/** Returns whether this is the default value, so that leaving it out has no effect. */
const isNeutral = (name: string, value: number): boolean => name !== 'top_k' && value === 1

/** Returns the stop strings. The format refuses stop strings without a visible character. */
function stopField(stop: unknown, dropped: Set<string>): Record<string, unknown> {
  if (isAbsent(stop)) return {}
  const given: readonly unknown[] = Array.isArray(stop) ? stop : [stop]
  const kept = given.filter(text => typeof text === 'string' && text.trim() !== '')
  if (kept.length < given.length) dropped.add('stop')
  return kept.length === 0 ? {} : { stop_sequences: kept }
}

/** Returns the fields for the end user and the service tier. */
function callerFields({ user, safety_identifier: newer, service_tier: tier }: JsonObject, dropped: Set<string>): Record<string, unknown> {
  const named = { auto: 'auto', standard_only: 'standard_only', default: 'standard_only' }
  const known = typeof tier === 'string' && Object.hasOwn(named, tier) ? named[tier as keyof typeof named] : undefined
  if (known === undefined && !isAbsent(tier)) dropped.add('service_tier')
  const [asks, other] = [user, newer].filter(id => typeof id === 'string' && id !== '')
  if (other !== undefined && other !== asks) dropped.add('safety_identifier')
  return {
    ...(typeof asks === 'string' ? { metadata: { user_id: asks } } : {}),
    ...(known === undefined ? {} : { service_tier: known }),
  }
}
