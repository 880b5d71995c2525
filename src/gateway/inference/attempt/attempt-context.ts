/** The context in which the reply of one attempt is read and written for the client, whole or as a stream. */
import type { EventFrames } from '../../providers/clouds/event-frames.ts'
import type { Dialect } from '../../providers/dialect.ts'
import type { Attempt } from '../../routing/plan.ts'
import type { ReplyContext } from '../../wire/client-format.ts'
import { echoOf } from '../../wire/model-echo.ts'
import { believed, usageBoundsOf } from '../charge/believed.ts'
import type { PerformContext } from '../kinds/kind.ts'
import type { Failed } from '../replies/answer.ts'
import { priceAsStreamed } from '../replies/served-model.ts'

/** The context of an attempt's reply. */
export interface AttemptContext {
  readonly attempt: Attempt
  readonly dialect: Dialect
  /** True when the client speaks the provider's format, so that bytes are relayed. */
  readonly isRelay: boolean
  readonly headers: Readonly<Record<string, string>>
  readonly context: PerformContext
  /** The reader of a stream in binary frames. Left out for all other replies. */
  readonly frames?: EventFrames
}

/** Returns the data of the call that a writer of the client's format needs. */
export function replyContext(attemptContext: AttemptContext, bill: PerformContext['bill']): ReplyContext {
  const { attempt, context } = attemptContext
  const { request, deps, kind } = context
  const bounds = usageBoundsOf(request, attempt, kind.hasOutput)
  return {
    model: attempt.route.modelId,
    request: request.native.body,
    promptTokens: request.promptTokens,
    nowSeconds: Math.floor(deps.clock.nowMs() / 1000),
    newId: prefix => `${prefix}${deps.ids.uuidv7(deps.clock.nowMs()).replaceAll('-', '')}`,
    bill,
    believed: (claimed, outputChars) => believed(claimed, bounds, outputChars),
    ...(attempt.byok ? {} : { named: priceAsStreamed(attemptContext) }),
  }
}

/** Returns the model name for the reply: the id in the catalog. Null when the provider uses the same name. */
export function echoFor({ attempt: { route } }: AttemptContext): Buffer | null {
  if (route.upstreamModel === route.modelId) return null
  const known = echoes.get(route)
  if (known !== undefined) return known
  const made = echoOf(route.modelId)
  echoes.set(route, made)
  return made
}

const echoes = new WeakMap<Attempt['route'], Buffer>()

/** Returns a failure after which another route may serve the call. */
export const failed = (attempt: Attempt, status: number, message: string): Failed => ({
  kind: 'failed',
  attempt,
  failure: { kind: 'transient', status },
  message,
})
