/** The parts of a request that depend on the model that serves it. They are made again for each attempt, from the original. */
import type { HubRequest, NativeRequest } from '../../providers/dialect.ts'
import type { Attempt } from '../../routing/plan.ts'
import type { ParsedRequest } from '../kinds/request.ts'
import { imageEdgeOf, type ShrinkTools, shrinkImages } from '../media/shrink-images.ts'
import { refuseUnpricedSound } from '../prompt-most.ts'
import { capAdvisory, withKnownEffort } from './reasoning.ts'
import { withoutNativeWithheld, withoutWithheld } from './withheld.ts'

export interface Prepared {
  readonly hub: HubRequest
  /** x-br-* headers that say what was done. */
  readonly headers: Readonly<Record<string, string>>
}

/** The hub request for an attempt. A promise only when something has to be worked on. Throws `bad_request`. */
export function prepare(request: ParsedRequest, attempt: Attempt, tools: ShrinkTools): Prepared | Promise<Prepared> {
  refuseUnpricedSound(request, attempt)
  const prepared = { hub: withoutWithheld(withKnownEffort(request.hub, attempt), attempt), headers: capAdvisory(request, attempt.model) }
  const edge = imageEdgeOf(request, attempt.model)
  return edge === null ? prepared : withSmallImages(prepared, request, edge, tools)
}

async function withSmallImages({ hub, headers }: Prepared, request: ParsedRequest, edge: number, tools: ShrinkTools): Promise<Prepared> {
  const shrunk = await shrinkImages('openai', hub.body, edge, request, tools)
  return shrunk === null ? { hub, headers } : { hub: { ...hub, body: shrunk.body, bytes: null }, headers: { ...headers, ...shrunk.headers } }
}

export interface PreparedNative {
  readonly native: NativeRequest
  readonly headers: Readonly<Record<string, string>>
  /** What of it does not go on. */
  readonly dropped: readonly string[]
}

/** The same for a provider that speaks the client's own format. The messages format goes on byte for byte unless the caller asks for small images. */
export function prepareNative(request: ParsedRequest, attempt: Attempt, tools: ShrinkTools): PreparedNative | Promise<PreparedNative> {
  refuseUnpricedSound(request, attempt)
  const prepared = { ...withoutNativeWithheld(request.native, attempt), headers: capAdvisory(request, attempt.model) }
  const edge = imageEdgeOf(request, attempt.model, prepared.native.format === 'anthropic')
  return edge === null ? prepared : withSmallNativeImages(prepared, request, edge, tools)
}

async function withSmallNativeImages(prepared: PreparedNative, request: ParsedRequest, edge: number, tools: ShrinkTools): Promise<PreparedNative> {
  const { native, headers } = prepared
  const shrunk = await shrinkImages(native.format, native.body, edge, request, tools)
  return shrunk === null ? prepared : { ...prepared, native: { ...native, body: shrunk.body, bytes: null }, headers: { ...headers, ...shrunk.headers } }
}
