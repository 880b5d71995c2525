/** Refuses fields of a messages request whose value is invalid in this format. */
import { fail, type GatewayError } from '../../../../platform/errors.ts'
import { isObject } from '../../../../platform/values/json.ts'

type Fields = Readonly<Record<string, unknown>>

const thinkingTypes: readonly unknown[] = ['enabled', 'disabled', 'adaptive', 'between_tools']

/** Throws `bad_request` that names the field. The format's own provider would also refuse such a value, and a translation would lose it. */
export function checkFields(request: Fields): void {
  for (const name of ['temperature', 'top_p', 'top_k'])
    if (isGiven(request[name]) && typeof request[name] !== 'number') throw bad(`"${name}" must be a number.`)
  checkStops(request['stop_sequences'])
  for (const name of ['metadata', 'thinking', 'output_config'])
    if (isGiven(request[name]) && !isObject(request[name])) throw bad(`"${name}" must be an object.`)
  const { thinking, output_config: config, output_format: older } = request
  if (isObject(thinking)) checkThinking(thinking)
  if (isObject(config)) {
    if (isGiven(config['effort']) && typeof config['effort'] !== 'string') throw bad('"output_config.effort" must be a string.')
    checkFormat(config['format'], 'output_config.format')
  }
  checkFormat(older, 'output_format')
}

function checkStops(stops: unknown): void {
  if (!isGiven(stops)) return
  if (!Array.isArray(stops)) throw bad('"stop_sequences" must be an array of strings.')
  const at = stops.findIndex(text => typeof text !== 'string')
  if (at !== -1) throw bad(`"stop_sequences[${at}]" must be a string.`)
}

function checkThinking({ type, budget_tokens: budget }: Fields): void {
  if (!thinkingTypes.includes(type)) throw bad('"thinking.type" must be "enabled", "disabled" or "adaptive".')
  if (type === 'enabled' && (typeof budget !== 'number' || !Number.isSafeInteger(budget) || budget < 0))
    throw bad('"thinking.budget_tokens" must be a whole number of tokens.')
}

function checkFormat(format: unknown, at: string): void {
  if (isGiven(format) && !(isObject(format) && format['type'] === 'json_schema' && isObject(format['schema'])))
    throw bad(`"${at}" must be {type: "json_schema", schema}.`)
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== null

function bad(message: string): GatewayError {
  return fail('bad_request', { message })
}
