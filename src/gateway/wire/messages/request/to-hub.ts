import { hash } from 'node:crypto'
import { fail } from '../../../../platform/errors.ts'
import { isObject } from '../../../../platform/values/json.ts'
import { toolNamesOf } from '../tool-names.ts'
import { checkFields } from './checks.ts'
import { shownTools } from './deferred-tools.ts'
import { hubToolChoice, hubTools } from './hub-tools.ts'
import { hubMessages } from './hub-turns.ts'
import { takesStrict } from './strict-schema.ts'

type Fields = Readonly<Record<string, unknown>>

/** A messages request in the hub format. */
export interface TranslatedMessages {
  readonly body: Record<string, unknown>
  /** Fields that the hub format cannot carry. */
  readonly dropped: readonly string[]
}

/** Maximum number of stop strings that OpenAI-shaped providers accept. */
const stopsMax = 4
/** The longest `user` that OpenAI accepts. */
const userMaxChars = 64

/** Fields that the code below reads. */
const readNames: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'system',
  'max_tokens',
  'stream',
  'tools',
  'tool_choice',
  'stop_sequences',
  'temperature',
  'top_p',
  'top_k',
  'metadata',
  'thinking',
  'output_config',
  'output_format',
])

/**
 * Translates a request. Nothing is lost silently: `dropped` names every field that has no place in the hub format. Throws `bad_request` that names the field,
 * for values that the format's own provider would also refuse, and for tools that only that provider runs.
 */
export function messagesToHub(request: Fields): TranslatedMessages {
  const dropped = new Set<string>()
  const drop = (name: string): void => void dropped.add(name)
  const names = toolNamesOf(request)
  checkOwnServices(request)
  checkFields(request)
  const tools = hubTools(shownTools(request), names, drop)
  const messages = hubMessages(request, { names, drop })
  for (const [name, value] of Object.entries(request)) if (!readNames.has(name) && !asksForNothing(name, value)) drop(name)
  const body: Record<string, unknown> = {
    model: request['model'],
    messages,
    max_tokens: ceilingOf(request),
    ...(request['stream'] === true ? { stream: true } : {}),
    ...(tools.length === 0 ? {} : { tools }),
    ...hubToolChoice(request, tools.length > 0, names, drop),
    ...sampling(request, drop),
    ...userOf(request['metadata'], drop),
    ...thinkingOf(request, drop),
    ...formatOf(request, drop),
  }
  return { body, dropped: [...dropped] }
}

/** Values that ask for the normal behaviour. A field with such a value is not reported as dropped. */
const defaults: Readonly<Record<string, unknown>> = { service_tier: 'auto', speed: 'standard' }

function asksForNothing(name: string, value: unknown): boolean {
  return value === undefined || value === null || (Array.isArray(value) && value.length === 0) || defaults[name] === value
}

/** Refuses services that only the format's own provider has. */
function checkOwnServices({ mcp_servers: servers, thread }: Fields): void {
  // The SDK of the format understands these error details, and then sends the whole conversation.
  if (isObject(thread) && thread['type'] === 'continue')
    throw fail('bad_request', {
      message: '"thread": nobody keeps conversations of this model. Send all messages, without "thread".',
      extra: { details: { error_code: 'thread_unsupported_request', unsupported: ['thread'] } },
    })
  if (Array.isArray(servers) && servers.length > 0)
    throw fail('bad_request', {
      message: '"mcp_servers" are called by the model\'s own provider, and this model has none that does. Call them from your side as tools.',
    })
}

function ceilingOf({ max_tokens: maxTokens }: Fields): number {
  if (typeof maxTokens !== 'number' || !Number.isSafeInteger(maxTokens) || maxTokens < 1)
    throw fail('bad_request', { message: '"max_tokens" is required and must be a whole number of at least 1.' })
  return maxTokens
}

function sampling({ stop_sequences: stops, temperature, top_p: topP, top_k: topK }: Fields, drop: (name: string) => void): Record<string, unknown> {
  const given: readonly unknown[] = Array.isArray(stops) ? stops : []
  const stop = given.filter(text => text !== '')
  if (stop.length > stopsMax || stop.length < given.length) drop('stop_sequences')
  return {
    ...(stop.length === 0 ? {} : { stop: stop.slice(0, stopsMax) }),
    ...(typeof temperature === 'number' ? { temperature } : {}),
    ...(typeof topP === 'number' ? { top_p: topP } : {}),
    ...(typeof topK === 'number' ? { top_k: topK } : {}),
  }
}

/** Returns the id of the end user. An id that is too long for providers becomes its hash, which distinguishes users equally well. */
function userOf(metadata: unknown, drop: (name: string) => void): Record<string, unknown> {
  if (!isObject(metadata)) return {}
  const { user_id: id, ...others } = metadata
  for (const [name, value] of Object.entries(others)) if (value !== undefined && value !== null) drop(`metadata.${name}`)
  if (typeof id !== 'string' || id === '') return {}
  return { user: id.length <= userMaxChars ? id : hash('sha256', id, 'hex') }
}

/** The reasoning effort for a thinking budget of at least this number of tokens. */
const effortByBudget = [
  { fromTokens: 10_000, effort: 'high' },
  { fromTokens: 4000, effort: 'medium' },
  { fromTokens: 0, effort: 'low' },
] as const

/**
 * Returns the effort. If the request has both an effort and a budget, the effort counts. `adaptive` without an effort leaves the choice to the model.
 * `thinking.display` is dropped, because the hub format has no such field.
 */
function thinkingOf({ thinking, output_config: config }: Fields, drop: (name: string) => void): Record<string, unknown> {
  const stated = isObject(config) ? config['effort'] : undefined
  const kind = isObject(thinking) ? thinking['type'] : undefined
  if (isObject(thinking) && thinking['display'] !== undefined && thinking['display'] !== null) drop('thinking.display')
  if (kind === 'between_tools') drop('thinking')
  if (kind === 'disabled') return { reasoning_effort: 'none' }
  if (typeof stated === 'string') return { reasoning_effort: stated }
  if (kind !== 'enabled' || !isObject(thinking)) return {}
  const budget = typeof thinking['budget_tokens'] === 'number' ? thinking['budget_tokens'] : 0
  return { reasoning_effort: effortByBudget.find(({ fromTokens }) => budget >= fromTokens)?.effort ?? 'low' }
}

/** Reads the schema for JSON output from `output_config.format`, or from its earlier name `output_format`. */
function formatOf({ output_config: config, output_format: older }: Fields, drop: (name: string) => void): Record<string, unknown> {
  for (const [name, value] of Object.entries(isObject(config) ? config : {}))
    if (name !== 'effort' && name !== 'format' && value !== undefined && value !== null) drop(`output_config.${name}`)
  const format = (isObject(config) ? config['format'] : undefined) ?? older
  if (!isObject(format) || format['type'] !== 'json_schema' || !isObject(format['schema'])) return {}
  return {
    response_format: {
      type: 'json_schema',
      json_schema: { name: 'reply', schema: format['schema'], ...(takesStrict(format['schema']) ? { strict: true } : {}) },
    },
  }
}
