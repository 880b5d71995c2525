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

/** What a performer gets in addition to the attempt. A performer is the function that makes one attempt of a call. */
export interface PerformContext {
  readonly kind: Kind
  readonly request: ParsedRequest
  readonly signal: CancelSignal
  /** The organisation that makes the call. */
  readonly orgId: number
  readonly deps: InferenceDeps
  /** Returns the charge of the call on this attempt. */
  readonly bill: BillOf
  /** Charges the call as this route's model when the provider served that model instead of the requested one. Absent when the call is not charged. */
  readonly priceAs?: (route: Route) => void
}

/** Makes one attempt: dials, and reads the reply until it is known whether the route serves the call. An exception counts as an unreachable provider. */
export type Performer = (attempt: Attempt, context: PerformContext) => Promise<Performed>

/** The client side of one inference API. Everything but `perform` is pure. */
export interface Kind {
  readonly usageKind: UsageKind
  /** The kind of model that serves these calls. */
  readonly modelKind: ServedKind
  /** True when replies have output tokens to hold money for. */
  readonly hasOutput: boolean
  readonly format: ClientFormat
  /** Checks and splits the body. Throws `bad_request` or `bad_steps`. */
  parse(input: CallInput): ParsedRequest
  /** Makes one attempt. */
  readonly perform: Performer
  /** Returns a relayed whole reply with the members that the provider left out. Null when the bytes pass unchanged. */
  complete(reply: Record<string, unknown>, usage: TokenUsage): Record<string, unknown> | null
}
