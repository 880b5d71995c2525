/**
 * Gives the hints of this process to the streams that may receive them. Changes arrive by ordinary function calls, are gathered for a tenth of a second, and are
 * then checked and sent together. While no stream is open, a change costs one comparison.
 */
import type { Clock } from '../../platform/clock.ts'
import { GatewayError } from '../../platform/errors.ts'
import { nextTurn } from '../../platform/loop/next-turn.ts'
import type { Log } from '../../platform/observe/log.ts'
import type { SessionPrincipal } from '../../platform/security/principal.ts'
import { type Audience, hasSameRights, isIn } from './audience.ts'
import type { Change } from './change.ts'
import { type HintStream, resetTopic } from './hint-stream.ts'
import type { StreamRegistry } from './stream-registry.ts'

/** The organisation and the person of an agent or a key. */
interface Holder {
  readonly id: number
  readonly orgId: number
  readonly userId: number | null
}

export interface HubDeps {
  readonly clock: Clock
  readonly log: Log
  readonly streams: StreamRegistry
  /** Returns the present principal of a session. Throws `no_session`. */
  readonly sessionOf: (sessionId: string) => SessionPrincipal | Promise<SessionPrincipal>
  readonly holders: Readonly<Record<'agent' | 'key', (ids: readonly number[]) => Promise<readonly Holder[]>>>
  /** Returns those of the keys of memory objects that the person may read now. */
  readonly readable: (principal: SessionPrincipal, keys: readonly string[]) => Promise<readonly string[]>
}

/** A topic, and who may receive it. */
interface Offer {
  readonly topic: string
  readonly audience: Audience
}

/** How long changes are gathered. */
const gatherMs = 100
/** The pause after a round that failed, for example because the database is away. */
const failedMs = 2_000
/** How often every stream checks its session, because a session may expire while nothing happens. */
const checkEveryMs = 15_000
/** Maximum number of memory objects and of topics of an organisation in one gathering. Beyond it, its streams are told to read everything again. */
const gatheredMax = 500
/**
 * Maximum number of agents and of keys of all organisations in one gathering. Beyond it, all streams are told to read everything again, because nobody knows
 * whose the others are. One act can change thousands of agents, and must not cause that.
 */
const unheldMax = 20_000
/** Number of agents or keys whose holders one statement reads. */
const heldTogether = 1_000
/** Number of streams after which other work runs. */
const streamsPerTurn = 50

export class HintHub {
  readonly #deps: HubDeps
  /** Ids of changed agents and keys whose holders are not known yet. */
  readonly #unheld = { agent: new Set<number>(), key: new Set<number>() }
  /** What changed in each organisation, or in the installation (null), since the last round. */
  readonly #offered = new Map<number | null, Map<string, Offer>>()
  /** Keys of changed memory objects by organisation. */
  readonly #objects = new Map<number, Set<string>>()
  #cancel: (() => void) | null = null
  #running: Promise<void> | null = null
  #stopChecks: (() => void) | null = null
  #pauseMs = gatherMs

  constructor(deps: HubDeps) {
    this.#deps = deps
  }

  /** Takes a change of any organisation. */
  changed(change: Change): void {
    const { streams } = this.#deps
    const { kind, orgId, id } = change
    if (streams.size === 0 || (orgId !== null && streams.ofOrg(orgId) === undefined)) return
    switch (kind) {
      case 'spent':
        this.#spent(orgId, id)
        break
      case 'budget':
      case 'webhook':
        this.#offer(orgId, id === null ? kind : `${kind}:${id}`, 'admins')
        break
      case 'tools':
        this.#offer(orgId, kind, 'everyone')
        break
      case 'member':
        this.#offer(orgId, id === null ? kind : `${kind}:${id}`, 'everyone')
        break
      case 'agent':
      case 'key':
        if (id === null) this.#offer(orgId, kind, { person: change.userId ?? null })
        else this.#lookUp(kind, Number(id), orgId)
    }
    this.#plan()
  }

  /** Takes the change of a memory object. */
  objectChanged(orgId: number, key: string): void {
    const keys = this.#objects.get(orgId) ?? new Set<string>()
    this.#objects.set(orgId, keys)
    if (keys.size < gatheredMax) keys.add(key)
    else this.#offer(orgId, resetTopic, 'everyone')
    this.#plan()
  }

  /** Tells the streams of an organisation, or all streams, that hints may be lost. */
  reset(orgId: number | null = null): void {
    this.#offer(orgId, resetTopic, 'everyone')
    this.#plan()
  }

  /** Ends the streams of a session, or of a member, because their rights may have changed. Their clients connect again with what they may see now. */
  endOf(of: { readonly sessionId: string } | { readonly orgId: number; readonly userId: number }): void {
    const { streams } = this.#deps
    const ended = 'sessionId' in of ? streams.ofSession(of.sessionId) : [...(streams.ofOrg(of.orgId) ?? [])].filter(each => each.principal.userId === of.userId)
    for (const stream of [...ended]) stream.end(true)
  }

  /** A stream of it has room, or has just begun. */
  wake(): void {
    this.#plan()
  }

  /** Starts and stops the regular checks of sessions with the number of open streams. */
  follow(): void {
    if (this.#deps.streams.size === 0) {
      this.#stopChecks?.()
      this.#stopChecks = null
      this.#offered.clear()
    } else this.#stopChecks ??= this.#deps.clock.every(checkEveryMs, () => void this.#checkAll())
  }

  #spent(orgId: number | null, id: string | null): void {
    this.#offer(orgId, 'usage', 'everyone')
    if (orgId === null || id === null) return
    this.#offer(orgId, `budget:${id}`, 'admins')
    const [scope, scopeId] = id.split(':')
    if (scope === 'agent' || scope === 'key') this.#lookUp(scope, Number(scopeId), orgId)
  }

  #lookUp(kind: 'agent' | 'key', id: number, orgId: number | null): void {
    const ids = this.#unheld[kind]
    if (ids.size < unheldMax || ids.has(id)) ids.add(id)
    else this.#offer(orgId, resetTopic, 'everyone')
  }

  /** Keeps an offer for the next round. Beyond the maximum, the streams of the organisation are told to read everything again. */
  #offer(orgId: number | null, topic: string, audience: Audience): void {
    const offers = this.#offered.get(orgId) ?? new Map<string, Offer>()
    this.#offered.set(orgId, offers)
    if (offers.has(resetTopic)) return
    if (topic === resetTopic || offers.size >= gatheredMax) {
      offers.clear()
      offers.set(resetTopic, { topic: resetTopic, audience: 'everyone' })
    } else offers.set(`${topic} ${typeof audience === 'string' ? audience : audience.person}`, { topic, audience })
  }

  /** Gives a stream the offers of its organisation that it may receive. */
  #give(stream: HintStream, offered: ReadonlyMap<number | null, ReadonlyMap<string, Offer>>): void {
    for (const orgId of [null, stream.principal.orgId])
      for (const { topic, audience } of offered.get(orgId)?.values() ?? []) if (isIn(stream.principal, audience)) stream.add(topic)
  }

  #plan(): void {
    if (this.#running !== null) return
    this.#cancel ??= this.#deps.clock.after(this.#pauseMs, () => {
      this.#cancel = null
      this.#pauseMs = gatherMs
      this.#running = this.#round()
        .catch((error: unknown) => {
          // Nobody knows who may see these changes now. The next round says that hints are lost.
          this.#deps.log.warn('hints_unsent', { error })
          this.#pauseMs = failedMs
          this.#offer(null, resetTopic, 'everyone')
        })
        .finally(() => {
          this.#running = null
          if (this.#hasWork()) this.#plan()
        })
    })
  }

  #hasWork(): boolean {
    if (this.#deps.streams.size === 0) return false
    if (this.#unheld.agent.size > 0 || this.#unheld.key.size > 0 || this.#objects.size > 0 || this.#offered.size > 0) return true
    for (const stream of this.#deps.streams.all()) if (stream.hasWaiting) return true
    return false
  }

  async #round(): Promise<void> {
    await this.#findHolders('agent')
    await this.#findHolders('key')
    for (const [orgId, keys] of [...this.#objects]) {
      this.#objects.delete(orgId)
      await this.#offerObjects(orgId, [...keys])
    }
    const offered = new Map(this.#offered)
    this.#offered.clear()
    const nowMs = this.#deps.clock.monotonicMs()
    let looked = 0
    for (const stream of [...this.#deps.streams.all()]) {
      this.#give(stream, offered)
      if (stream.isDue(nowMs) && (await this.#isGood(stream))) stream.send(nowMs)
      looked++
      if (looked % streamsPerTurn === 0) await nextTurn()
    }
  }

  async #findHolders(kind: 'agent' | 'key'): Promise<void> {
    const ids = [...this.#unheld[kind]]
    if (ids.length === 0) return
    this.#unheld[kind].clear()
    for (let at = 0; at < ids.length; at += heldTogether)
      for (const { id, orgId, userId } of await this.#deps.holders[kind](ids.slice(at, at + heldTogether)))
        if (this.#deps.streams.ofOrg(orgId) !== undefined) this.#offer(orgId, `${kind}:${id}`, { person: userId })
  }

  /** Checks the rights to the objects once for each person, when the hint is given. */
  async #offerObjects(orgId: number, keys: readonly string[]): Promise<void> {
    const byPerson = new Map<number, HintStream[]>()
    for (const stream of this.#deps.streams.ofOrg(orgId) ?? []) {
      const { userId } = stream.principal
      byPerson.set(userId, [...(byPerson.get(userId) ?? []), stream])
    }
    for (const own of byPerson.values()) {
      const [first] = own
      if (first === undefined) continue
      for (const key of await this.#deps.readable(first.principal, keys)) for (const stream of own) stream.add(`memory:${key}`)
    }
  }

  /** Checks the session of a stream before it sends. Ends the stream when the session has ended or has other rights. */
  async #isGood(stream: HintStream): Promise<boolean> {
    try {
      const now = this.#deps.sessionOf(stream.principal.sessionId)
      if (hasSameRights(now instanceof Promise ? await now : now, stream.principal)) return true
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
    }
    stream.end(true)
    return false
  }

  async #checkAll(): Promise<void> {
    try {
      for (const stream of [...this.#deps.streams.all()]) await this.#isGood(stream)
    } catch (error) {
      this.#deps.log.warn('hints_unchecked', { error })
    }
  }
}
