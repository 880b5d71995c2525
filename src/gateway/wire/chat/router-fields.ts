/**
 * The gateway's own request fields. This file reads, checks and removes them, so they are never forwarded. A field that restricts routing is refused when
 * its value is unknown. It is never ignored.
 */

import { fail } from '../../../platform/errors.ts'
import { isObject } from '../../../platform/values/json.ts'

export type OptimizeMode = 'price' | 'latency' | 'uptime' | 'throughput' | 'quality' | 'auto'

export interface RouterFields {
  readonly optimize: OptimizeMode
  /** null: the request gives no weight above zero. */
  readonly weights: { readonly price: number; readonly latency: number; readonly uptime: number; readonly throughput: number } | null
  readonly best: boolean
  /** The id of the provider that the caller chose, or null. */
  readonly provider: string | null
  readonly indiaOnly: boolean
  readonly exclude: readonly string[]
  /** The caller's provider key for this request. The code that calls `parseRouterFields` must wrap the key in a Secret. */
  readonly upstreamKey: string | null
  /** The steps of a chain for this request, or null. */
  readonly fallbacks: readonly ChainStep[] | null
  /** Whether large inline images are made smaller; null: not given. */
  readonly imageOptimize: 'auto' | 'off' | null
  /** The longest edge of an image that the caller allows, in whole pixels; null: as long as the model accepts. */
  readonly imageMaxEdge: number | null
}

/** One step of a chain: a model, and a provider if only that one may serve it. */
export interface ChainStep {
  readonly model: string
  readonly provider: string | null
}

/** The fields that only the gateway reads. `reasoning_effort` is not one of them, because the model needs it. */
export const routerOnlyNames = [
  'optimize',
  'optimize_weights',
  'route',
  'provider',
  'data_policy',
  'exclude',
  'upstream_key',
  'fallbacks',
  'image_optimize',
  'image_max_edge',
] as const

export const optimizeModes = ['price', 'latency', 'uptime', 'throughput', 'quality', 'auto'] as const satisfies readonly OptimizeMode[]

/** Maximum number of steps of a chain. The specification of the API says "1 to 10 steps". */
export const chainStepsMax = 10
/** Maximum number of entries of `exclude`. The project chose this number. No real list reaches it. */
export const excludeMax = 256
/** The longest id of a model or provider that is accepted. */
const idMaxChars = 256
/** The longest provider key. A key must also fit in one header line. */
const keyMaxChars = 4096

export interface ParsedRouterFields {
  readonly fields: RouterFields
  /** The body without router-only fields. It is the same object if it had none. */
  readonly stripped: Record<string, unknown>
  /** True: the body had a router-only field. False: the client's bytes may be passed on unchanged. */
  readonly touched: boolean
}

/** The fields of a request that has none. It is one object, so that code can recognise it. */
export const defaultFields: RouterFields = Object.freeze({
  optimize: 'price',
  weights: null,
  best: false,
  provider: null,
  indiaOnly: false,
  exclude: Object.freeze([]),
  upstreamKey: null,
  fallbacks: null,
  imageOptimize: null,
  imageMaxEdge: null,
})

/**
 * Reads and removes the router-only fields of a request. null counts as absent. The model id `best` also sets `best`. Throws `bad_request` that names the
 * field, and `bad_steps` for `fallbacks`. A message never repeats a given value.
 */
export function parseRouterFields(body: Record<string, unknown>): ParsedRouterFields {
  const best = body['model'] === 'best'
  if (!routerOnlyNames.some(name => Object.hasOwn(body, name)))
    return { fields: best ? { ...defaultFields, best } : defaultFields, stripped: body, touched: false }

  const fields: RouterFields = {
    optimize: choice(body, 'optimize', optimizeModes) ?? 'price',
    weights: weightsOf(body['optimize_weights']),
    best: choice(body, 'route', ['best']) !== null || best,
    provider: idOf(body, 'provider'),
    indiaOnly: choice(body, 'data_policy', ['india_only']) !== null,
    exclude: excludeOf(body['exclude']),
    upstreamKey: upstreamKeyOf(body['upstream_key']),
    fallbacks: body['fallbacks'] === null || body['fallbacks'] === undefined ? null : parseChainSteps(body['fallbacks'], 'fallbacks'),
    imageOptimize: choice(body, 'image_optimize', ['auto', 'off']),
    imageMaxEdge: imageMaxEdgeOf(body['image_max_edge']),
  }
  // A spread copies an own key such as "__proto__" correctly. Assigning the keys one by one would not.
  const stripped = { ...body }
  for (const name of routerOnlyNames) delete stripped[name]
  return { fields, stripped, touched: true }
}

/**
 * Returns the steps of a chain: 1 to 10 of them, each a model id or `{model, provider?}` without other keys. Routing checks later whether the ids exist. Throws
 * `bad_steps`. `name` is the field in the message.
 */
export function parseChainSteps(value: unknown, name: string): readonly ChainStep[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > chainStepsMax)
    throw fail('bad_steps', { message: `"${name}" must be an array of 1 to ${chainStepsMax} steps.` })
  return value.map((step: unknown, index): ChainStep => {
    const at = `${name}[${index}]`
    if (typeof step === 'string') return { model: stepId(step, at), provider: null }
    if (!isObject(step)) throw fail('bad_steps', { message: `"${at}" must be a model id or an object {model, provider?}.` })
    const { model, provider, ...others } = step
    const extra = Object.keys(others).length > 0
    if (extra) throw fail('bad_steps', { message: `"${at}" may have the keys "model" and "provider" only.` })
    return { model: stepId(model, `${at}.model`), provider: provider === undefined || provider === null ? null : stepId(provider, `${at}.provider`) }
  })
}

function stepId(value: unknown, at: string): string {
  if (typeof value !== 'string' || value === '' || value.length > idMaxChars)
    throw fail('bad_steps', { message: `"${at}" must be a non-empty string of at most ${idMaxChars} characters.` })
  return value
}

function choice<T extends string>(body: Record<string, unknown>, name: string, allowed: readonly T[]): T | null {
  const value = body[name]
  if (value === undefined || value === null) return null
  const found = allowed.find(item => item === value)
  if (found === undefined)
    throw fail('bad_request', { message: `"${name}" must be ${allowed.length === 1 ? '' : 'one of '}${allowed.map(item => `"${item}"`).join(', ')}.` })
  return found
}

function idOf(body: Record<string, unknown>, name: string): string | null {
  const value = body[name]
  if (value === undefined || value === null) return null
  if (typeof value !== 'string' || value === '' || value.length > idMaxChars)
    throw fail('bad_request', { message: `"${name}" must be a non-empty string of at most ${idMaxChars} characters.` })
  return value
}

/** Maximum weight. A larger one is malformed, because the sum of all weights must be a finite number. */
const weightMax = 1e100

/** Reads the weights. A malformed weight counts as 0, and unknown axes are ignored. Returns null if no weight is above zero. */
function weightsOf(value: unknown): RouterFields['weights'] {
  if (!isObject(value)) return null
  const axis = (name: string): number => {
    const weight = value[name]
    return typeof weight === 'number' && weight > 0 && weight <= weightMax ? weight : 0
  }
  const weights = { price: axis('price'), latency: axis('latency'), uptime: axis('uptime'), throughput: axis('throughput') }
  return weights.price + weights.latency + weights.uptime + weights.throughput > 0 ? weights : null
}

function excludeOf(value: unknown): readonly string[] {
  if (value === undefined || value === null) return defaultFields.exclude
  if (!Array.isArray(value) || value.length > excludeMax) throw fail('bad_request', { message: `"exclude" must be an array of at most ${excludeMax} strings.` })
  return value.map((item: unknown, index) => {
    if (typeof item !== 'string' || item === '') throw fail('bad_request', { message: `"exclude[${index}]" must be a provider id or "provider/model".` })
    return item
  })
}

/** Checks the key. It is sent in a header, so it must be printable ASCII without spaces. */
function upstreamKeyOf(value: unknown): string | null {
  if (value === undefined || value === null) return null
  if (typeof value !== 'string' || value.length > keyMaxChars || !/^[\x21-\x7e]+$/.test(value))
    throw fail('bad_request', { message: '"upstream_key" must be a non-empty string of printable ASCII without spaces.' })
  return value
}

function imageMaxEdgeOf(edge: unknown): number | null {
  if (edge === undefined || edge === null) return null
  if (typeof edge !== 'number' || !Number.isFinite(edge) || edge < 1)
    throw fail('bad_request', { message: '"image_max_edge" must be a number of pixels, at least 1.' })
  return Math.floor(edge)
}
