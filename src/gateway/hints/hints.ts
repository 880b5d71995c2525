import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db/db.ts'
import type { ControlLog, News } from '../../platform/db/db-control-log.ts'
import { type Reply, reply } from '../../platform/endpoint.ts'
import { fail } from '../../platform/errors.ts'
import type { CancelSignal } from '../../platform/loop/cancellation.ts'
import type { Log } from '../../platform/observe/log.ts'
import type { SessionPrincipal } from '../../platform/security/principal.ts'
import type { Shares } from '../../platform/shares.ts'
import { type Act, changeOfAct, changesOfNews, changesOfSpend } from './change-sources.ts'
import { HintHub, type HubDeps } from './hint-hub.ts'
import { HintRelay } from './hint-relay.ts'
import { HintStream } from './hint-stream.ts'
import { StreamRegistry } from './stream-registry.ts'

export interface HintsDeps extends Pick<HubDeps, 'sessionOf' | 'holders' | 'readable'> {
  readonly db: Db
  readonly clock: Clock
  readonly log: Log
  readonly controlLog: Pick<ControlLog, 'on' | 'onGap'>
  /** Names this process among the others. */
  readonly name: string
  /** The streams of all founders of organisations. */
  readonly places: Shares<string>
  readonly founderOf: (orgId: number) => string
  /** Calls the listener for every changed memory object of the organisation, on any process. Returns a function that stops it. */
  readonly onObject: (orgId: number, listener: (key: string) => void) => Promise<() => void>
  /** The kind of the control-log item for a session that was ended or moved. */
  readonly sessionChanged: string
}

const keepAlive = Buffer.from(': keep-alive\n\n')
const headers = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-store', 'x-accel-buffering': 'no' }

/**
 * Hints for people at the console: the topics that have changed, never what they contain. Every process receives all changes and sends each stream only what
 * its session may see. Decision 0700 says why.
 */
export class Hints {
  readonly #deps: HintsDeps
  readonly #streams: StreamRegistry
  readonly #hub: HintHub
  readonly #relay: HintRelay
  /** What follows the memory of an organisation while streams of it are open. */
  readonly #memory = new Map<number, Promise<() => void>>()
  #isClosed = false

  constructor(deps: HintsDeps) {
    const { controlLog } = deps
    this.#deps = deps
    this.#streams = new StreamRegistry(deps.places, deps.founderOf)
    const hub = new HintHub({ ...deps, streams: this.#streams })
    this.#hub = hub
    this.#relay = new HintRelay({
      ...deps,
      isListening: () => this.#streams.size > 0,
      changed: change => hub.changed(change),
      onLost: () => hub.reset(),
    })
    controlLog.on(news => this.#onNews(news))
    controlLog.onGap(() => hub.reset())
  }

  /** True while somebody, in any process, listens. */
  get isWanted(): boolean {
    return this.#relay.isWanted
  }

  start(): Promise<void> {
    return this.#relay.start()
  }

  async stop(): Promise<void> {
    this.endAll()
    await this.#relay.stop()
  }

  /** Reports scopes that have spent something in this process. */
  spent(scopes: Parameters<typeof changesOfSpend>[0]): void {
    for (const change of changesOfSpend(scopes)) this.#relay.announce(change)
  }

  /** Reports that something was spent, and nobody knows by whom. */
  unknown(): void {
    this.#relay.announce({ kind: 'spent', orgId: null, id: null })
  }

  /** Reports that deliveries of a webhook have changed in this process. */
  delivered(orgId: number, endpointId: number): void {
    if (this.isWanted) this.#relay.announce({ kind: 'webhook', orgId, id: String(endpointId) })
  }

  /** Reports an act of management that has succeeded in this process. */
  acted(act: Act): void {
    if (!this.isWanted) return
    const change = changeOfAct(act)
    if (change !== null) this.#relay.announce(change)
  }

  /**
   * Returns the stream of a session. It lasts until the client leaves, the session ends or gets other rights, or the process ends. Throws `places_taken`, and
   * `shutting_down` when this process ends.
   */
  async listen(principal: SessionPrincipal, signal: CancelSignal): Promise<Reply> {
    if (this.#isClosed) throw fail('shutting_down')
    const stream = new HintStream(principal)
    this.#streams.add(stream)
    const leave = (): void => stream.end()
    signal.addEventListener('abort', leave, { once: true })
    this.#followers()
    try {
      await this.#followMemory(principal.orgId)
    } catch (error) {
      this.#left(stream)
      throw error
    }
    if (signal.aborted) stream.end()
    const pump = async (sink: Parameters<HintStream['pump']>[0]): Promise<void> => {
      try {
        await stream.pump(sink, () => this.#hub.wake())
      } finally {
        signal.removeEventListener('abort', leave)
        this.#left(stream)
      }
    }
    return reply.livingStream(pump, () => keepAlive, headers)
  }

  /** Ends all streams in good order, and takes no new ones. Their clients connect again, to another process. */
  endAll(): void {
    this.#isClosed = true
    for (const stream of [...this.#streams.all()]) stream.end()
  }

  #onNews(news: News): void {
    if (this.#streams.size === 0) return
    if (news.kind === this.#deps.sessionChanged) this.#hub.endOf({ sessionId: news.ref })
    for (const change of changesOfNews(news)) {
      if (change.kind === 'member' && change.orgId !== null) this.#hub.endOf({ orgId: change.orgId, userId: Number(change.id) })
      this.#hub.changed(change)
    }
  }

  #left(stream: HintStream): void {
    if (this.#streams.remove(stream)) this.#leaveMemory(stream.principal.orgId)
    this.#followers()
  }

  #followers(): void {
    this.#hub.follow()
    this.#relay.follow()
  }

  async #followMemory(orgId: number): Promise<void> {
    let following = this.#memory.get(orgId)
    if (following === undefined) {
      following = this.#deps.onObject(orgId, key => this.#hub.objectChanged(orgId, key))
      this.#memory.set(orgId, following)
    }
    try {
      await following
    } catch (error) {
      if (this.#memory.get(orgId) === following) this.#memory.delete(orgId)
      throw error
    }
  }

  #leaveMemory(orgId: number): void {
    const following = this.#memory.get(orgId)
    this.#memory.delete(orgId)
    void following?.then(
      stop => stop(),
      () => undefined,
    )
  }
}
