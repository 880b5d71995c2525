import { runCapsViewOf } from '../../platform/security/run-caps.ts'
import { inrFromUinr } from '../../platform/values/money.ts'
import type { BudgetStatus } from '../limits/budgets/budgets.ts'
import { type TierLimits, tierOf } from './key-rules.ts'
import type { KeyState, ListedKey } from './listing/list-queries.ts'

/** A key as clients see it, without its secret. Amounts are in rupees. Times are ISO 8601 in UTC. */
export interface KeyView {
  readonly id: number
  readonly prefix: string
  readonly name: string
  readonly tier: 'trial' | 'standard'
  readonly scope: 'full' | 'inference'
  readonly state: KeyState
  readonly enabled: boolean
  readonly owner: { readonly uid: number } | null
  readonly workspace_id: number | null
  readonly rpm_limit: number | null
  readonly daily_limit: number | null
  readonly budget_inr: number | null
  readonly spend_month_inr: number
  readonly lifecycle_pin: 'keep' | null
  readonly inactivity_notice_at: string | null
  readonly allowed_models: readonly string[] | null
  readonly allowed_providers: readonly string[] | null
  readonly max_cost_inr_per_call: number | null
  readonly max_output_tokens: number | null
  readonly max_concurrency: number | null
  readonly tpm_limit: number | null
  readonly allowed_tools: readonly string[] | null
  readonly run: ReturnType<typeof runCapsViewOf>
  readonly last_used_at: string | null
  readonly expires_at: string | null
  readonly created_at: string
  readonly rotated_at: string | null
  readonly previous_until: string | null
}

/** The values that a view needs in addition to the row. */
export interface ViewContext {
  readonly budget: BudgetStatus | undefined
  /** The last use that is not in the database yet, in Unix milliseconds. Null when there is none. */
  readonly pendingUseMs: number | null
  readonly nowMs: number
  readonly tiers: TierLimits
}

export function keyView(row: ListedKey, { budget, pendingUseMs, nowMs, tiers }: ViewContext): KeyView {
  const capUinr = budget?.capUinr ?? null
  const lastUsedMs = Math.max(row.lastUsedAt?.getTime() ?? 0, pendingUseMs ?? 0)
  const previousUntil = row.previousUntil !== null && row.previousUntil.getTime() > nowMs ? row.previousUntil : null
  return {
    id: row.id,
    prefix: row.prefix,
    name: row.name,
    tier: tierOf(row.tier, tiers),
    scope: row.scope,
    state: stateOf(row, nowMs),
    enabled: row.enabled,
    owner: row.userId === null ? null : { uid: row.userId },
    workspace_id: row.workspaceId,
    rpm_limit: row.rpmLimit,
    daily_limit: row.dailyLimit,
    budget_inr: capUinr === null ? null : inrFromUinr(capUinr),
    spend_month_inr: inrFromUinr(budget?.spentUinr ?? 0n),
    lifecycle_pin: row.lifecyclePin,
    inactivity_notice_at: iso(row.noticeAt),
    allowed_models: row.allowedModels,
    allowed_providers: row.allowedProviders,
    max_cost_inr_per_call: row.maxCostUinr === null ? null : inrFromUinr(row.maxCostUinr),
    max_output_tokens: row.maxOutputTokens,
    max_concurrency: row.maxConcurrency,
    tpm_limit: row.tpmLimit,
    allowed_tools: row.allowedTools,
    run: runCapsViewOf(row.runCaps),
    last_used_at: lastUsedMs === 0 ? null : new Date(lastUsedMs).toISOString(),
    expires_at: iso(row.expiresAt),
    created_at: row.createdAt.toISOString(),
    rotated_at: iso(row.rotatedAt),
    previous_until: iso(previousUntil),
  }
}

function stateOf(row: ListedKey, nowMs: number): KeyView['state'] {
  if (row.revokedAt !== null) return 'revoked'
  if (!row.hasOwner) return 'owner_left'
  if (row.expiresAt !== null && row.expiresAt.getTime() <= nowMs) return 'expired'
  if (!row.enabled) return row.disabledReason === 'inactivity' ? 'disabled_inactive' : 'disabled'
  return row.noticeAt === null ? 'active' : 'notice'
}

function iso(at: Date | null): string | null {
  return at === null ? null : at.toISOString()
}
