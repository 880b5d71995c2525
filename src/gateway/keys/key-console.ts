import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db/db.ts'
import type { NewsItem } from '../../platform/db/db-control-log.ts'
import { fail } from '../../platform/errors.ts'
import type { Flushable } from '../../platform/flushable.ts'
import type { KeyLimits, Role } from '../../platform/security/principal.ts'
import { capOfInr } from '../limits/budgets/budget-amount.ts'
import { type Budgets, capChanged } from '../limits/budgets/budgets.ts'
import { checkCeiling, defaultLimits, exceeds, type KeyTier } from './key-rules.ts'
import { type KeyView, keyView } from './key-view.ts'
import type { CreatedKey, KeyChanges, NewKey } from './key-writes.ts'
import type { Keys, RotatedKey } from './keys.ts'
import { type KeyFilter, pageOfKeys } from './listing/key-list.ts'
import { findKey, type ListedKey } from './listing/list-queries.ts'

export interface KeyConsoleDeps {
  readonly db: Db
  readonly clock: Clock
  readonly keys: Keys
  readonly budgets: Pick<Budgets, 'setIn' | 'list'>
  /** Writes the charges of finished calls to the database, so that the reported spend includes them. */
  readonly journal: Flushable
}

/** The signed-in person who makes or changes keys. */
export interface KeyActor {
  readonly orgId: number
  readonly userId: number
  readonly role: Role
}

export interface KeyParams extends Pick<NewKey, 'name' | 'scope' | 'workspaceId' | 'rpmLimit' | 'dailyLimit' | 'expiresDays' | 'lifecyclePin' | 'policies'> {
  /** Budget in rupees a month. Null means no budget. */
  readonly budgetInr: number | null
}

/** Maximum number of keys on one page. */
export const keysPageMax = 200

/**
 * What people do with keys in the console, and the rules about who may do it. A rule that depends only on the role is in the endpoint row
 * instead.
 */
export class KeyConsole {
  readonly #deps: KeyConsoleDeps

  constructor(deps: KeyConsoleDeps) {
    this.#deps = deps
  }

  /**
   * Makes a key for the person. Throws `bad_name`, `bad_request`, `duplicate_key_name`, `trial_ceiling`, `org_limit_reached`. Throws
   * `not_found` for an unknown workspace, and for a member also for a workspace that does not list the member. Throws `forbidden` when a
   * member asks for more than the default limits or for exemption from the inactivity rule.
   */
  async create(actor: KeyActor, params: KeyParams): Promise<CreatedKey> {
    const { orgId, userId, role } = actor
    const { budgetInr, ...rest } = params
    const capUinr = capOfKey(budgetInr)
    if (role === 'member' && params.lifecyclePin === 'keep')
      throw fail('forbidden', { message: 'Only an owner or admin may exempt a key from the inactivity rule.' })
    return this.#deps.keys.create(
      { ...rest, orgId, userId, isOwnWorkspace: role === 'member' },
      {
        allow: (tier, limits) => this.#checkLimits(role, tier, limits),
        also: async (tx, keyId) => (capUinr === null ? [] : this.#setBudget(tx, orgId, keyId, capUinr)),
      },
    )
  }

  /** Returns a page of the keys that a filter chooses, and the cursor of the next page. Throws `bad_request` for an invalid cursor. */
  async list(orgId: number, filter: KeyFilter): Promise<{ keys: KeyView[]; next_cursor: string | null }> {
    const { db, clock } = this.#deps
    const { keys, nextCursor } = await pageOfKeys(db, orgId, filter, new Date(clock.nowMs()))
    return { keys: await this.#views(orgId, keys), next_cursor: nextCursor }
  }

  /**
   * Changes the fields that `changes` contains, including the budget. Throws `not_found`, `bad_name`, `bad_request`, `duplicate_key_name`,
   * `trial_ceiling`.
   */
  async change(orgId: number, keyId: number, changes: KeyChanges & { readonly budgetInr?: number | null | undefined }): Promise<KeyView> {
    const { budgetInr, ...rest } = changes
    const capUinr = budgetInr === undefined ? undefined : capOfKey(budgetInr)
    await this.#deps.keys.change(orgId, keyId, rest, async tx => (capUinr === undefined ? [] : this.#setBudget(tx, orgId, keyId, capUinr)))
    return this.#view(orgId, keyId)
  }

  /** Revokes a key permanently and cuts its calls. A repeated revoke is no error. Throws `not_found`. */
  async revoke(orgId: number, keyId: number): Promise<KeyView> {
    await this.#deps.keys.revoke(orgId, keyId)
    return this.#view(orgId, keyId)
  }

  /**
   * Gives the key a new secret. People may rotate their own keys. Owners and admins may also rotate keys without a user. They may not
   * rotate the key of another person, because the secret gives that person's rights, including private memory. Throws `not_found`,
   * `forbidden`, `bad_request`.
   */
  rotate({ orgId, userId, role }: KeyActor, keyId: number, overlapDays: number): Promise<RotatedKey> {
    return this.#deps.keys.rotate(orgId, keyId, overlapDays, ownerId => {
      if (ownerId === userId || (ownerId === null && role !== 'member')) return
      throw fail('forbidden', { message: 'Only the person whose key it is gets a new secret for it. An owner or admin can end it: DELETE /me/keys/{id}.' })
    })
  }

  #checkLimits(role: Role, tier: KeyTier, limits: KeyLimits): void {
    const { tiers } = this.#deps.keys
    checkCeiling(tier, limits, tiers)
    const usual = defaultLimits(tier, tiers)
    if (role !== 'member' || (!exceeds(limits.rpmLimit, usual.rpmLimit) && !exceeds(limits.dailyLimit, usual.dailyLimit))) return
    const aDay = usual.dailyLimit === null ? '' : ` and ${usual.dailyLimit} a day`
    throw fail('forbidden', { message: `A member makes keys of at most ${usual.rpmLimit} requests a minute${aDay}. An owner or admin can raise them.` })
  }

  async #setBudget(tx: Tx, orgId: number, keyId: number, capUinr: bigint | null): Promise<NewsItem[]> {
    await this.#deps.budgets.setIn(tx, orgId, 'key', String(keyId), capUinr)
    return [{ kind: capChanged, ref: `${orgId}:key:${keyId}` }]
  }

  async #view(orgId: number, keyId: number): Promise<KeyView> {
    const [view] = await this.#views(orgId, [await this.#deps.db.one(findKey, orgId, keyId)])
    if (view === undefined) throw new Error('a key without a view')
    return view
  }

  async #views(orgId: number, rows: readonly ListedKey[]): Promise<KeyView[]> {
    const { keys, budgets, clock, journal } = this.#deps
    await journal.flushNow()
    const found = await budgets.list(
      orgId,
      rows.map(row => ({ scope: 'key', scopeId: String(row.id) })),
    )
    const nowMs = clock.nowMs()
    return rows.map((row, i) => keyView(row, { budget: found[i], pendingUseMs: keys.use.pendingMs(row.id), nowMs, tiers: keys.tiers }))
  }
}

const capOfKey = (budgetInr: number | null): bigint | null => capOfInr(budgetInr, { field: 'budget_inr', toStop: 'disable the key with {"enabled": false}' })
