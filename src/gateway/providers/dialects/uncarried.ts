import { isObject, type JsonObject } from '../../../platform/values/json.ts'
import { isAbsent } from './json-values.ts'

/** Values that ask for the default behaviour. Leaving them out has no effect. */
const neutral: Readonly<Record<string, readonly unknown[]>> = {
  n: [1],
  frequency_penalty: [0],
  presence_penalty: [0],
  repetition_penalty: [1],
  logprobs: [false],
  top_logprobs: [0],
  store: [false],
  service_tier: ['auto'],
}

/** Adds to `dropped` the name of every field that is not translated, except fields whose value asks for nothing. */
export function nameUncarried(body: JsonObject, carried: ReadonlySet<string>, dropped: Set<string>): void {
  for (const [name, value] of Object.entries(body)) if (!carried.has(name) && !asksForNothing(name, value)) dropped.add(name)
}

/** Adds to `dropped` the stream options that are not translated. The usage option is not added, because every stream reports usage at the end. */
export function nameStreamOptions({ stream_options: options }: JsonObject, dropped: Set<string>): void {
  if (!isObject(options)) return
  for (const [name, value] of Object.entries(options))
    if (name !== 'include_usage' && !isAbsent(value) && value !== false) dropped.add(`stream_options.${name}`)
}

/** Returns whether leaving out the value has no effect. */
export function asksForNothing(name: string, value: unknown): boolean {
  if (isAbsent(value) || (neutral[name]?.includes(value) ?? false)) return true
  if (Array.isArray(value)) return value.length === 0 || (name === 'modalities' && value.length === 1 && value[0] === 'text')
  return isObject(value) && Object.keys(value).length === 0
}
