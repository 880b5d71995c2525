/** The model that a reply names: on the platform's key nobody is served a dearer one for the price of another. */
import type { Route } from '../../catalog/model.ts'
import type { AttemptContext } from '../attempt/attempt-context.ts'

/** Longest name of a model that is read, and how much of a stream's first chunk is looked through for it. */
const namedAs = /"model"\s*:\s*"([^"\\]{1,200})"/
const lookedThroughBytes = 8 * 1024

/** `"name"` as it stands in JSON, by route. */
const quotedNames = new WeakMap<Route, Buffer>()

/** Charges the call as the model that the whole reply names, when that is another one and dearer. */
export function priceAsNamed(model: unknown, { attempt, context }: AttemptContext): void {
  const { route, byok } = attempt
  if (byok || typeof model !== 'string' || model === route.upstreamModel || model === route.modelId) return
  const dearer = context.deps.dearerRoute?.(route, model) ?? null
  if (dearer === null) return
  context.priceAs?.(dearer)
  context.deps.log.warn('another model answered', { provider: route.provider.id, model: route.modelId, code: dearer.modelId })
}

/** The same for a stream, by its first chunk. */
export function priceAsStreamed(chunk: Uint8Array, attemptContext: AttemptContext): void {
  const { route, byok } = attemptContext.attempt
  if (byok) return
  const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, Math.min(chunk.byteLength, lookedThroughBytes))
  const quoted = quotedNames.get(route) ?? Buffer.from(JSON.stringify(route.upstreamModel))
  quotedNames.set(route, quoted)
  if (!bytes.includes(quoted)) priceAsNamed(namedAs.exec(bytes.toString('utf8'))?.[1], attemptContext)
}
