/** What of a request depends on the model that serves it: done anew for each attempt, from the original. */
import type { HubRequest, NativeRequest } from '../providers/dialect.ts'
import type { Attempt } from '../routing/plan.ts'
import type { ParsedRequest } from './kinds/request.ts'
import { capAdvisory, withKnownEffort } from './reasoning.ts'
import { imageEdgeOf, type ShrinkTools, shrinkImages } from './shrink-images.ts'

export interface Prepared {
  readonly hub: HubRequest
  /** x-br-* headers that say what was done. */
  readonly headers: Readonly<Record<string, string>>
}

/** The hub request for an attempt. A promise only when something has to be worked on. Throws `bad_request`. */
export function prepare(request: ParsedRequest, attempt: Attempt, tools: ShrinkTools): Prepared | Promise<Prepared> {
  const prepared = { hub: withKnownEffort(request.hub, attempt), headers: capAdvisory(request, attempt.model) }
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
}

/** The same for a provider that speaks the client's own format. The messages format goes on byte for byte unless the caller asks for small images. */
export function prepareNative(request: ParsedRequest, attempt: Attempt, tools: ShrinkTools): PreparedNative | Promise<PreparedNative> {
  const { native } = request
  const headers = capAdvisory(request, attempt.model)
  const edge = imageEdgeOf(request, attempt.model, native.format === 'anthropic')
  return edge === null ? { native, headers } : withSmallNativeImages({ native, headers }, request, edge, tools)
}

async function withSmallNativeImages({ native, headers }: PreparedNative, request: ParsedRequest, edge: number, tools: ShrinkTools): Promise<PreparedNative> {
  const shrunk = await shrinkImages(native.format, native.body, edge, request, tools)
  return shrunk === null ? { native, headers } : { native: { ...native, body: shrunk.body, bytes: null }, headers: { ...headers, ...shrunk.headers } }
}
