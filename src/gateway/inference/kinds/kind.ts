import type { CancelSignal } from '../../../platform/loop/cancellation.ts'
import type { Route } from '../../catalog/model.ts'
import type { Attempt, ServedKind } from '../../routing/plan.ts'
import type { UsageKind } from '../../usage/events/record.ts'
import type { ClientFormat } from '../../wire/client-format.ts'
import type { TokenUsage } from '../../wire/usage.ts'
import type { InferenceDeps } from '../deps.ts'
import type { Performed } from '../replies/answer.ts'
import type { BillOf } from '../stream/stream-adapter.ts'
import type { CallInput, ParsedRequest } from './request.ts'

/** What a performer is given beside the attempt. */
export interface PerformContext {
  readonly kind: Kind
  readonly request: ParsedRequest
  readonly signal: CancelSignal
  /** The organisation whose call it is. */
  readonly orgId: number
  readonly deps: InferenceDeps
  /** What the call would be charged on this attempt. */
  readonly bill: BillOf
  /** Charges the call as this route's model, which the provider served in place of the one that was asked. Left out: it is not charged. */
  readonly priceAs?: (route: Route) => void
}

/** Makes one attempt: dials, reads as far as it must to know whether it serves. What it throws counts as unreachable. */
export type Performer = (attempt: Attempt, context: PerformContext) => Promise<Performed>

/** The client side of one inference API. Pure but for `perform`. */
export interface Kind {
  readonly usageKind: UsageKind
  /** What a model must be to serve it. */
  readonly modelKind: ServedKind
  /** True when replies have output tokens to hold money for. */
  readonly hasOutput: boolean
  readonly format: ClientFormat
  /** Checks and splits the body. Throws `bad_request` or `bad_steps`. */
  parse(input: CallInput): ParsedRequest
  /** Makes one attempt. */
  readonly perform: Performer
  /** Completes a whole reply that is relayed in this format where the provider left something out; null = pass the bytes as they came. */
  complete(reply: Record<string, unknown>, usage: TokenUsage): Record<string, unknown> | null
}
