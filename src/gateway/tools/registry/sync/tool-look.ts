/** Reads the tools of a server once, without saving anything. */
import type { Clock } from '../../../../platform/clock.ts'
import { fail } from '../../../../platform/errors.ts'
import { Cancellation, type CancelSignal } from '../../../../platform/loop/cancellation.ts'
import type { Upstreams, UpstreamTarget } from '../../upstream/upstream.ts'
import { UpstreamError } from '../../upstream/upstream-error.ts'
import { type Received, receivedTools } from '../definitions/received-tools.ts'

/**
 * Why a server could not be read. `too_many_tools`: it lists more than TOOLS_PER_SERVER. `credential`: its sealed header cannot be opened. `issuer`: the
 * issuer of its tokens gave none. `connection_required`: people connect with it, and no owner or admin has done that.
 */
export const lookErrors = [
  'unauthorized',
  'unavailable',
  'timeout',
  'too_large',
  'protocol',
  'cancelled',
  'blocked_address',
  'rpc',
  'too_many_tools',
  'credential',
  'issuer',
  'connection_required',
] as const
export type LookError = (typeof lookErrors)[number]

/** What a server shows: its era and its tools, or why it could not be read. */
export type Look =
  | { readonly ok: true; readonly era: 'modern' | 'legacy'; readonly received: Received }
  | { readonly ok: false; readonly error: LookError; readonly message: string }

export interface ToolLooksDeps {
  readonly clock: Clock
  readonly listTools: Upstreams['listTools']
  /** The setting TOOLS_PER_SERVER. */
  readonly toolsMax: number
}

/** Longest time for reading the tools of a server. A person may wait for the result. */
export const lookTimeoutMs = 20_000
/** Maximum number of servers of one organisation that this process reads concurrently. */
const looksOfOrgMax = 4

/** Reads tools of servers. An organisation has a limited number of reads under way. */
export class ToolLooks {
  readonly #deps: ToolLooksDeps
  readonly #running = new Map<number, number>()
  constructor(deps: ToolLooksDeps) {
    this.#deps = deps
  }

  /** Returns the organisations that have their maximum of reads under way. */
  get busyOrgs(): readonly number[] {
    return [...this.#running].flatMap(([orgId, count]) => (count >= looksOfOrgMax ? [orgId] : []))
  }

  /** Reads the tools of a server under a slug. Failures of the server are in the result. Throws `places_taken`, and the signal's reason when it aborts. */
  async look(orgId: number, slug: string, target: Omit<UpstreamTarget, 'timeoutMs'>, signal: CancelSignal): Promise<Look> {
    const count = this.#running.get(orgId) ?? 0
    if (count >= looksOfOrgMax)
      throw fail('places_taken', { message: `This process reads ${looksOfOrgMax} MCP servers of the organisation already. Try again shortly.` })
    this.#running.set(orgId, count + 1)
    try {
      return await this.#read(slug, { ...target, timeoutMs: lookTimeoutMs }, signal)
    } finally {
      const left = (this.#running.get(orgId) ?? 1) - 1
      if (left === 0) this.#running.delete(orgId)
      else this.#running.set(orgId, left)
    }
  }

  async #read(slug: string, target: UpstreamTarget, signal: CancelSignal): Promise<Look> {
    const { listTools, toolsMax } = this.#deps
    try {
      const { era, tools } = await this.#inTime(signal, cut => listTools(target, cut))
      if (tools.length > toolsMax) return failed('too_many_tools', `it lists ${tools.length} tools, and a server may have ${toolsMax}`)
      return { ok: true, era, received: await receivedTools(slug, tools) }
    } catch (error) {
      if (signal.aborted) throw signal.reason
      if (!(error instanceof UpstreamError)) throw error
      return error.kind === 'cancelled' ? failed('timeout', `it did not answer within ${lookTimeoutMs / 1000} s`) : failed(error.kind, error.message)
    }
  }

  /** Runs `work` with a signal that also aborts when the time is over. */
  async #inTime<T>(signal: CancelSignal, work: (cut: CancelSignal) => Promise<T>): Promise<T> {
    const cut = new Cancellation()
    const onAbort = (): void => cut.abort(signal.reason)
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
    const stopTimer = this.#deps.clock.after(lookTimeoutMs, () => cut.abort(new Error('reading the tools took too long')))
    try {
      return await work(cut)
    } finally {
      stopTimer()
      signal.removeEventListener('abort', onAbort)
    }
  }
}

const failed = (error: LookError, message: string): Look => ({ ok: false, error, message })
