/** Prepares the parts of a request that depend on the serving model. Each attempt prepares them again from the original request. */
import type { HubRequest, NativeRequest } from '../../providers/dialect.ts'
import type { Attempt } from '../../routing/plan.ts'
import type { ParsedRequest } from '../kinds/request.ts'
import { refuseUnpricedFiles } from '../media/file-fees.ts'
import { imageEdgeOf, type ShrinkTools, shrinkImages } from '../media/shrink-images.ts'
import { refuseUnpricedSound } from '../prompt-most.ts'
import { capAdvisory, withKnownEffort } from './reasoning.ts'
import { withoutNativeWithheld, withoutWithheld } from './withheld.ts'

export interface Prepared {
  readonly hub: HubRequest
  /** The x-br-* headers that describe the changes. */
  readonly headers: Readonly<Record<string, string>>
}

/** Returns the hub request for an attempt. It returns a promise only when pictures may have to be shrunk. Throws `bad_request`. */
export function prepare(request: ParsedRequest, attempt: Attempt, tools: ShrinkTools): Prepared | Promise<Prepared> {
  refuseUnpricedSound(request, attempt)
  refuseUnpricedFiles(request, attempt)
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
  /** The names of the fields that are not sent. */
  readonly dropped: readonly string[]
}

/**
 * Returns the request for a provider that speaks the client's format. A request in the format of messages or of Google is sent byte for byte unless a field is
 * withheld or the caller asks for small pictures.
 */
export function prepareNative(request: ParsedRequest, attempt: Attempt, tools: ShrinkTools): PreparedNative | Promise<PreparedNative> {
  refuseUnpricedSound(request, attempt)
  refuseUnpricedFiles(request, attempt)
  const prepared = { ...withoutNativeWithheld(request.native, attempt), headers: capAdvisory(request, attempt.model) }
  const edge = imageEdgeOf(request, attempt.model, prepared.native.format === 'anthropic' || prepared.native.format === 'gemini')
  return edge === null ? prepared : withSmallNativeImages(prepared, request, edge, tools)
}

async function withSmallNativeImages(prepared: PreparedNative, request: ParsedRequest, edge: number, tools: ShrinkTools): Promise<PreparedNative> {
  const { native, headers } = prepared
  const shrunk = await shrinkImages(native.format, native.body, edge, request, tools)
  return shrunk === null ? prepared : { ...prepared, native: { ...native, body: shrunk.body, bytes: null }, headers: { ...headers, ...shrunk.headers } }
}
