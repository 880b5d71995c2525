/** How the reply of one attempt goes to the client: what reading it needs, whole or as a stream. */
import type { Dialect } from '../../providers/dialect.ts'
import type { Attempt } from '../../routing/plan.ts'
import type { ReplyContext } from '../../wire/client-format.ts'
import { echoOf } from '../../wire/model-echo.ts'
import { believed, usageBoundsOf } from '../charge/believed.ts'
import type { PerformContext } from '../kinds/kind.ts'
import type { Failed } from '../replies/answer.ts'
import { priceAsStreamed } from '../replies/served-model.ts'

/** How the reply of an attempt goes to the client. */
export interface AttemptContext {
  readonly attempt: Attempt
  readonly dialect: Dialect
  /** The client speaks the provider's format: bytes go through as they are. */
  readonly isRelay: boolean
  readonly headers: Readonly<Record<string, string>>
  readonly context: PerformContext
}

/** What a writer is told of the call. */
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

/** What the reply calls the model: its id in the catalog, where the provider has another name for it. */
export function echoFor({ attempt: { route } }: AttemptContext): Buffer | null {
  if (route.upstreamModel === route.modelId) return null
  const known = echoes.get(route)
  if (known !== undefined) return known
  const made = echoOf(route.modelId)
  echoes.set(route, made)
  return made
}

const echoes = new WeakMap<Attempt['route'], Buffer>()

/** A failure that another route may make up for. */
export const failed = (attempt: Attempt, status: number, message: string): Failed => ({
  kind: 'failed',
  attempt,
  failure: { kind: 'transient', status },
  message,
})
