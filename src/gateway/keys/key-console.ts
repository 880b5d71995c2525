import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db/db.ts'
import type { NewsItem } from '../../platform/db/db-control-log.ts'
import { fail } from '../../platform/errors.ts'
import type { Flushable } from '../../platform/flushable.ts'
import type { KeyLimits, Role } from '../../platform/security/principal.ts'
import { rowId } from '../../platform/values/row-id.ts'
import { capOfInr } from '../limits/budgets/budget-amount.ts'
import { type Budgets, capChanged } from '../limits/budgets/budgets.ts'
import { checkCeiling, defaultLimits, exceeds, type KeyTier } from './key-rules.ts'
import { type KeyView, keyView } from './key-view.ts'
import type { CreatedKey, KeyChanges, NewKey } from './key-writes.ts'
import type { Keys, RotatedKey } from './keys.ts'
import { findKey, type ListedKey, listKeys } from './list-queries.ts'

export interface KeyConsoleDeps {
  readonly db: Db
  readonly clock: Clock
  readonly keys: Keys
  readonly budgets: Pick<Budgets, 'setIn' | 'list'>
  /** Writes what calls have spent so far, so that the figures have it. */
  readonly journal: Flushable
}

/** Whoever makes or changes keys: a signed-in person. */
export interface KeyActor {
  readonly orgId: number
  readonly userId: number
  readonly role: Role
}

export interface KeyParams extends Pick<NewKey, 'name' | 'scope' | 'workspaceId' | 'rpmLimit' | 'dailyLimit' | 'expiresDays' | 'lifecyclePin' | 'policies'> {
  /** Rupees a month; null = none. */
  readonly budgetInr: number | null
}

/** Keys of one page at most. */
export const keysPageMax = 200

/** What people do with keys at the console, with the rules of who may do what. Rows check the role where it is the same for every key. */
export class KeyConsole {
  readonly #deps: KeyConsoleDeps

  constructor(deps: KeyConsoleDeps) {
    this.#deps = deps
  }

  /**
   * Makes a key of the person. Throws `bad_name`, `bad_request`, `duplicate_key_name`, `trial_ceiling`, `not_found` for a
   * workspace that is not the person's, `forbidden` for a member who asks for more than the default limits or for exemption from the inactivity rule.
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

  /** A page of the keys that are not revoked, newest first, and the cursor of the next page. Throws `bad_request` for an invalid cursor. */
  async list(orgId: number, limit: number, cursor: string | null): Promise<{ keys: KeyView[]; next_cursor: string | null }> {
    const belowId = cursor === null ? null : rowId(cursor)
    if (cursor !== null && belowId === null) throw fail('bad_request', { message: 'That cursor is not one of ours. Send next_cursor of the page before.' })
    const rows = await this.#deps.db.many(listKeys, orgId, belowId, limit + 1)
    const page = rows.slice(0, limit)
    return { keys: await this.#views(orgId, page), next_cursor: rows.length > limit ? String(page.at(-1)?.id) : null }
  }

  /** Changes what the changes name, the budget with it. Throws `not_found`, `bad_name`, `bad_request`, `duplicate_key_name`, `trial_ceiling`. */
  async change(orgId: number, keyId: number, changes: KeyChanges & { readonly budgetInr?: number | null | undefined }): Promise<KeyView> {
    const { budgetInr, ...rest } = changes
    const capUinr = budgetInr === undefined ? undefined : capOfKey(budgetInr)
    await this.#deps.keys.change(orgId, keyId, rest, async tx => (capUinr === undefined ? [] : this.#setBudget(tx, orgId, keyId, capUinr)))
    return this.#view(orgId, keyId)
  }

  /** Ends a key for good and cuts its calls; again is fine. Throws `not_found`. */
  async revoke(orgId: number, keyId: number): Promise<KeyView> {
    await this.#deps.keys.revoke(orgId, keyId)
    return this.#view(orgId, keyId)
  }

  /**
   * A new secret for the key. People rotate their own keys, owners and admins also keys without a user: whoever has the secret
   * of somebody's key acts as that person, private memory included. Throws `not_found`, `forbidden`, `bad_request`.
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
