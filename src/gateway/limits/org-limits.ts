/** The limits of a whole organisation, for all of its keys, agents and streams together. Decision 0398 gives the reasons. */
import type { Clock } from '../../platform/clock.ts'
import type { Config } from '../../platform/config.ts'
import type { Db, Tx } from '../../platform/db/db.ts'
import type { ControlLog } from '../../platform/db/db-control-log.ts'
import { fail } from '../../platform/errors.ts'
import { ExpiringCache } from '../../platform/loop/expiring-cache.ts'
import { countActiveAgents, countLiveKeys, deleteOrgLimits, findOrgLimits, lockOrgToCount, type OrgLimitsRow, setOrgLimits } from './org-limits-queries.ts'

/** The limits in force. Null means no limit. */
export type OrgLimitsView = { readonly [Name in keyof OrgLimitsRow]: number | null }

/** The settings of these limits. */
export type OrgLimitsConfig = Pick<
  Config,
  'ORG_RPM' | 'ORG_RUNNING' | 'ORG_KEYS' | 'ORG_AGENTS' | 'ORG_STREAMS' | 'TRIAL_DAILY' | 'TRIAL_ORG_DAILY' | 'CACHE_TTL_MS'
>

/** The kind of the control news of a changed limit. The ref is the organisation's id. */
export const orgLimitsChanged = 'org_limits_changed'

const orgsMax = 20_000
const ttlMaxMs = 30_000
/** No limits. */
export const noOrgLimits: OrgLimitsView = { rpm: null, running: null, keys: null, agents: null, streams: null }

/** What is cached of an organisation. */
interface Known {
  readonly limits: OrgLimitsView
  readonly isFirst: boolean
}

export interface OrgLimitsOptions {
  readonly db: Db
  readonly clock: Clock
  readonly config: OrgLimitsConfig
  readonly controlLog: ControlLog
}

/** The limits of organisations, cached for each organisation. Other processes learn of a change within a second. */
export class OrgLimits {
  readonly #options: OrgLimitsOptions
  readonly #cache: ExpiringCache<number, Known>
  readonly #listeners: (() => void)[] = []

  constructor(options: OrgLimitsOptions) {
    this.#options = options
    const { clock, config, controlLog } = options
    this.#cache = new ExpiringCache({ max: orgsMax, ttlMs: Math.min(config.CACHE_TTL_MS, ttlMaxMs), clock, load: orgId => this.#load(orgId) })
    controlLog.on(news => {
      if (news.kind === orgLimitsChanged) this.#forget(Number(news.ref))
    })
    controlLog.onGap(() => {
      this.#cache.clear()
      for (const listener of this.#listeners) listener()
    })
  }

  /** Adds a listener that is called whenever a limit of any organisation may have changed. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener)
  }

  /** Returns the limits in force. Throws when they are not cached and the database is away. */
  async of(orgId: number): Promise<OrgLimitsView> {
    return (await this.#cache.get(orgId))?.limits ?? noOrgLimits
  }

  /**
   * Returns the number of free calls that the trial keys of the organisation's founder may make in a day together. Null for the oldest organisation, whose
   * calls are the operator's own. Throws when the organisation is not cached and the database is away. Decision 0670 gives the reasons.
   */
  async trialDailyOf(orgId: number): Promise<number | null> {
    const { TRIAL_ORG_DAILY, TRIAL_DAILY } = this.#options.config
    return (await this.#cache.get(orgId))?.isFirst === true ? null : TRIAL_ORG_DAILY || TRIAL_DAILY
  }

  /** Sets the named limits, where 0 means no limit. `reset` first resets all limits to the settings. Throws `not_found`. */
  async set(orgId: number, params: { readonly [Name in keyof OrgLimitsRow]?: number | null | undefined }, reset: boolean): Promise<OrgLimitsView> {
    const { db, controlLog } = this.#options
    if ((await db.maybe(findOrgLimits, orgId)) === null) throw fail('not_found', { message: `There is no organisation ${orgId}.` })
    await controlLog.change(async tx => {
      if (reset) await tx.exec(deleteOrgLimits, orgId)
      await tx.one(setOrgLimits, orgId, params.rpm ?? null, params.running ?? null, params.keys ?? null, params.agents ?? null, params.streams ?? null)
      return { value: undefined, news: [{ kind: orgLimitsChanged, ref: String(orgId) }] }
    })
    this.#forget(orgId)
    return (await this.#load(orgId))?.limits ?? noOrgLimits
  }

  /** Returns `allowOneMore` for keys or for agents. */
  allowing(what: 'keys' | 'agents'): (tx: Tx, orgId: number) => Promise<void> {
    return (tx, orgId) => this.allowOneMore(tx, orgId, what)
  }

  /**
   * Checks that the organisation may have one more key or agent. It locks the organisation's row until the transaction ends, so that the limit
   * is exact over all processes. Throws `org_limit_reached`.
   */
  async allowOneMore(tx: Tx, orgId: number, what: 'keys' | 'agents'): Promise<void> {
    const row = await tx.maybe(findOrgLimits, orgId)
    const limit = row === null ? null : this.#inForce(row)[what]
    if (limit === null) return
    await tx.maybe(lockOrgToCount, orgId)
    const { count } = what === 'keys' ? await tx.one(countLiveKeys, orgId, new Date(this.#options.clock.nowMs())) : await tx.one(countActiveAgents, orgId)
    if (count < limit) return
    const setting = what === 'keys' ? 'ORG_KEYS' : 'ORG_AGENTS'
    throw fail('org_limit_reached', {
      message: `This organisation has ${count} ${what}, and its limit is ${limit} (${setting}). Revoke one that is not used, or ask the operator for more.`,
      extra: { scope: 'org', limit, limit_name: setting },
    })
  }

  #forget(orgId: number): void {
    this.#cache.invalidate(orgId)
    for (const listener of this.#listeners) listener()
  }

  async #load(orgId: number): Promise<Known | null> {
    const row = await this.#options.db.maybe(findOrgLimits, orgId)
    return row === null ? null : { limits: this.#inForce(row), isFirst: row.isFirst }
  }

  #inForce(row: OrgLimitsRow & { isFirst: boolean }): OrgLimitsView {
    const { ORG_RPM, ORG_RUNNING, ORG_KEYS, ORG_AGENTS, ORG_STREAMS } = this.#options.config
    // The oldest organisation is the operator's own. It has no limits unless the operator sets some.
    const inForce = (ruled: number | null, setting: number): number | null => (ruled ?? (row.isFirst ? 0 : setting)) || null
    return {
      rpm: inForce(row.rpm, ORG_RPM),
      running: inForce(row.running, ORG_RUNNING),
      keys: inForce(row.keys, ORG_KEYS),
      agents: inForce(row.agents, ORG_AGENTS),
      streams: inForce(row.streams, ORG_STREAMS),
    }
  }
}
