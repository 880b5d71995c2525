import type { BearerPrincipal } from '../../../platform/security/principal.ts'
import type { Permit } from '../../limits/engine/admission.ts'
import type { Outcome, RunOfCall, UsageEvent } from '../../usage/events/record.ts'
import type { CallableTool } from '../registry/callable-tool.ts'

/** The facts of a call that its usage event contains. None of them is text of the arguments or of the result. */
export interface ToolCallFacts {
  readonly principal: BearerPrincipal
  readonly agentId: number | null
  readonly agentLabel: string | null
  readonly requestId: string
  readonly tool: CallableTool
  readonly startedAtMs: number
  /** The run of the call. Null when it names none. */
  readonly run: RunOfCall | null
  /** The tags of the call, as its event keeps them. */
  readonly tags: string | null
}

/** Returns the provider id of a tool's server in usage events. */
export const toolProvider = (slug: string): string => `mcp:${slug}`

/** The account of one call: it opens the journal record before the dial, and settles exactly once. */
export class ToolCharge {
  readonly #permit: Permit<UsageEvent>
  readonly #facts: ToolCallFacts
  readonly #monotonicMs: () => number
  #isEnded = false

  constructor(permit: Permit<UsageEvent>, facts: ToolCallFacts, monotonicMs: () => number) {
    this.#permit = permit
    this.#facts = facts
    this.#monotonicMs = monotonicMs
  }

  /** Resolves when the journal has the call. If the process dies after that, the call counts once, with its price. */
  open(): Promise<void> {
    return this.#permit.open(this.#event(true, 'interrupted', 200))
  }

  /** Ends the call. It costs its price when bytes of it were sent, and nothing otherwise. */
  async settle(isSent: boolean, outcome: Outcome, status: number): Promise<void> {
    if (this.#isEnded) return
    this.#isEnded = true
    await this.#permit.settle(this.#event(isSent, outcome, status))
  }

  /** Ends a call that never came to its dial. It leaves no event. */
  release(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#permit.release()
  }

  #event(isSent: boolean, outcome: Outcome, status: number): UsageEvent {
    const { principal, agentId, agentLabel, requestId, tool, startedAtMs, run, tags } = this.#facts
    return {
      id: this.#permit.eventId,
      atMs: this.#permit.admittedAtMs,
      requestId,
      orgId: principal.orgId,
      userId: principal.userId,
      keyId: principal.keyId,
      workspaceId: principal.workspaceId,
      agentId,
      agentLabel,
      kind: 'tool',
      model: tool.publicName,
      provider: toolProvider(tool.slug),
      // The organisation says where its server is. Nobody checks that.
      residency: tool.residency === 'india' ? 'declared' : 'global',
      streamed: false,
      byok: false,
      status,
      outcome,
      promptTokens: 0,
      completionTokens: 0,
      cachedTokens: 0,
      cacheWriteTokens: 0,
      reasoningTokens: 0,
      images: 0,
      audioSeconds: 0,
      characters: 0,
      estimated: false,
      valueUinr: isSent ? tool.priceUinr : 0n,
      // The organisation pays its server itself, so the prepaid balance pays nothing.
      costUinr: 0n,
      latencyMs: Math.round(this.#monotonicMs() - startedAtMs),
      firstByteMs: null,
      ...run,
      ...(tags === null ? {} : { tags }),
    }
  }
}
