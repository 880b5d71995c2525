import { fail } from '../../../../platform/errors.ts'
import { isObject, type JsonObject, objectsOf } from '../../../../platform/values/json.ts'
import { camelOf, configOf, fieldOf, objectAt, textAt } from '../fields.ts'
import { geminiToolNames } from '../tool-names.ts'
import { bad } from './hub-parts.ts'
import { hubToolsOf } from './hub-tools.ts'
import { hubMessagesOf } from './hub-turns.ts'
import { jsonSchemaOf } from './json-schema.ts'

/** A request of Google's API in the hub format. */
export interface TranslatedGemini {
  readonly body: Record<string, unknown>
  /** Fields that the hub format cannot carry. */
  readonly dropped: readonly string[]
}

/** Maximum number of stop strings that OpenAI-shaped providers accept. */
const stopsMax = 4
/** Fields of the request that the code below reads. */
const read: ReadonlySet<string> = new Set(['model', 'contents', 'systemInstruction', 'tools', 'toolConfig', 'generationConfig', 'safetySettings'])
/** Settings that the code below reads. */
const readSettings: ReadonlySet<string> = new Set([
  ...['temperature', 'topP', 'topK', 'candidateCount', 'maxOutputTokens', 'stopSequences', 'presencePenalty', 'frequencyPenalty', 'seed'],
  ...['responseMimeType', 'responseSchema', 'responseJsonSchema', '_responseJsonSchema', 'responseModalities', 'thinkingConfig'],
])

/**
 * Translates a request. Nothing is lost silently: `dropped` names every field that has no place in the hub format. Throws `bad_request` and
 * `unsupported_operation` that name the field.
 */
export function geminiToHub(model: string, request: JsonObject, stream: boolean): TranslatedGemini {
  const dropped = new Set<string>()
  const drop = (name: string): void => void dropped.add(name)
  const names = geminiToolNames(request)
  if (isGiven(fieldOf(request, 'cachedContent')))
    throw fail('unsupported_operation', { message: '"cachedContent" names something that is stored at Google. Send the content itself.' })
  const messages = hubMessagesOf(request, { names, drop })
  if (messages.every(({ role }) => role === 'system')) throw bad('"contents" must have a part with content.')
  for (const [name, value] of Object.entries(request)) if (!read.has(camelOf(name)) && asks(value)) drop(camelOf(name))
  if (filters(fieldOf(request, 'safetySettings'))) drop('safetySettings')
  const config = configOf(request)
  for (const [name, value] of Object.entries(config)) if (!readSettings.has(camelOf(name)) && asks(value)) drop(`generationConfig.${camelOf(name)}`)
  const body = {
    model,
    messages,
    ...(stream ? { stream: true } : {}),
    ...hubToolsOf(request, names, drop),
    ...samplingOf(config, drop),
    ...formatOf(config, drop),
    ...thinkingOf(objectAt(config, 'thinkingConfig')),
  }
  return { body, dropped: [...dropped] }
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== null

/** Returns whether a value asks for something: it is not the default of a field. */
const asks = (value: unknown): boolean =>
  isGiven(value) && value !== false && value !== '' && !(Array.isArray(value) && value.length === 0) && !(isObject(value) && Object.keys(value).length === 0)

/** Returns whether safety settings ask for a filter. Other providers have their own. */
const filters = (settings: unknown): boolean => objectsOf(settings).some(({ threshold }) => threshold !== 'OFF' && threshold !== 'BLOCK_NONE')

/** The numbers that have another name in the hub format, and the same meaning. */
const numbers = [
  ['temperature', 'temperature'],
  ['topP', 'top_p'],
  ['topK', 'top_k'],
  ['candidateCount', 'n'],
  ['maxOutputTokens', 'max_tokens'],
  ['presencePenalty', 'presence_penalty'],
  ['frequencyPenalty', 'frequency_penalty'],
  ['seed', 'seed'],
] as const

function samplingOf(config: JsonObject, drop: (name: string) => void): JsonObject {
  const made: Record<string, unknown> = {}
  for (const [name, hubName] of numbers) {
    const value = fieldOf(config, name)
    if (!isGiven(value)) continue
    if (typeof value !== 'number') throw bad(`"generationConfig.${name}" must be a number.`)
    if (name !== 'candidateCount' || value > 1) made[hubName] = value
  }
  const stops = fieldOf(config, 'stopSequences')
  if (!isGiven(stops)) return made
  if (!Array.isArray(stops) || stops.some(text => typeof text !== 'string')) throw bad('"generationConfig.stopSequences" must be an array of strings.')
  const kept = stops.filter(text => text !== '').slice(0, stopsMax)
  if (kept.length < stops.length) drop('generationConfig.stopSequences')
  return kept.length === 0 ? made : { ...made, stop: kept }
}

/** Reads the form of the reply: JSON, with or without a schema. */
function formatOf(config: JsonObject, drop: (name: string) => void): JsonObject {
  const modalities = fieldOf(config, 'responseModalities')
  if (Array.isArray(modalities) && modalities.some(each => String(each).toUpperCase() !== 'TEXT'))
    throw fail('unsupported_operation', { message: '"generationConfig.responseModalities": this model answers with text only.' })
  const type = textAt(config, 'responseMimeType')
  const given = fieldOf(config, 'responseJsonSchema') ?? config['_responseJsonSchema']
  const schema = isObject(given) ? given : jsonSchemaGiven(fieldOf(config, 'responseSchema'))
  if (type === '' || type === 'text/plain') {
    if (schema !== null) drop('generationConfig.responseSchema')
    return {}
  }
  if (type === 'text/x.enum') {
    drop('generationConfig.responseMimeType')
    return {}
  }
  if (type !== 'application/json') throw bad('"generationConfig.responseMimeType" must be "text/plain" or "application/json".')
  return { response_format: schema === null ? { type: 'json_object' } : { type: 'json_schema', json_schema: { name: 'reply', schema } } }
}

const jsonSchemaGiven = (schema: unknown): unknown => (isObject(schema) ? jsonSchemaOf(schema) : null)

/** The reasoning effort for a thinking budget of at least this number of tokens. */
const effortByBudget = [
  { fromTokens: 10_000, effort: 'high' },
  { fromTokens: 4000, effort: 'medium' },
  { fromTokens: 1, effort: 'low' },
  { fromTokens: 0, effort: 'none' },
] as const

/** Returns the effort. A negative budget leaves the choice to the model. `includeThoughts` decides only what the reply shows. */
function thinkingOf(thinking: JsonObject): JsonObject {
  const level = textAt(thinking, 'thinkingLevel').toLowerCase()
  if (['minimal', 'low', 'medium', 'high'].includes(level)) return { reasoning_effort: level }
  const budget = fieldOf(thinking, 'thinkingBudget')
  if (!isGiven(budget)) return {}
  if (typeof budget !== 'number') throw bad('"generationConfig.thinkingConfig.thinkingBudget" must be a number.')
  const effort = effortByBudget.find(({ fromTokens }) => budget >= fromTokens)?.effort
  return effort === undefined ? {} : { reasoning_effort: effort }
}

/** Returns whether the reply shows the thoughts of the model. */
export const showsThoughts = (request: JsonObject): boolean => fieldOf(objectAt(configOf(request), 'thinkingConfig'), 'includeThoughts') === true
