import type { CancelSignal } from '../../../platform/loop/cancellation.ts'
import type { Target, UpstreamRequest } from '../../providers/dialect.ts'
import type { ImageStyle } from '../../providers/image-style.ts'
import type { ImageParams } from '../../wire/images.ts'
import { written } from '../attempt/written.ts'
import { writtenInTurns } from '../attempt/written-slices.ts'
import type { InferenceDeps } from '../deps.ts'

/** What the requests of one attempt have in common. */
export interface ImageRequestContext {
  readonly style: ImageStyle
  readonly target: Target
  readonly signal: CancelSignal
  readonly deps: Pick<InferenceDeps, 'ids' | 'inTurn' | 'exact'>
}

/** Returns the request for a number of pictures. */
export type ImageRequestOf = (n: number) => UpstreamRequest | Promise<UpstreamRequest>

/**
 * Returns a function that writes the requests of one attempt. Requests for equally many pictures have the same bytes, which are written and kept once. A
 * heavy request is written in turns. The function throws or rejects with `bad_request` for a body that is nested too deeply. Decision 0664 says why.
 */
export function imageRequests(params: ImageParams, context: ImageRequestContext): ImageRequestOf {
  const { style, target, signal, deps } = context
  const { inTurn } = deps
  const made = new Map<number, UpstreamRequest | Promise<UpstreamRequest>>()
  return n => {
    const known = made.get(n)
    if (known !== undefined) return known
    const secret = (): string => deps.ids.secret('brigade-', 24)
    const request =
      inTurn === undefined
        ? written(() => style.request({ ...params, n }, target, secret()))
        : writtenInTurns(
            () => style.request({ ...params, n }, { ...target, writesLater: true }, secret()),
            deps.exact !== undefined,
            work => inTurn(work, signal),
          )
    made.set(n, request)
    return request
  }
}
