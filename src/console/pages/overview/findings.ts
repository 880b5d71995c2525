/** What a person should look at, from the replies that the overview reads. */
import type { ReplyOf } from '../../api/call.ts'
import { text } from './text.ts'

/** One sentence, and the page where the person does something about it. */
export interface Finding {
  readonly id: string
  readonly tone: 'warn' | 'bad'
  readonly words: string
  readonly to: { readonly path: string; readonly search?: Readonly<Record<string, string | number>> } | null
}

type Health = ReplyOf<'health'>
type Budgets = ReplyOf<'orgBudgets'>['budgets']
type Keys = ReplyOf<'listKeys'>['keys']
type Webhooks = ReplyOf<'listWebhooks'>['webhooks']

const nearShare = 0.8
const dayMs = 86_400_000
/** A key is named when it ends within this time. */
const soonMs = 7 * dayMs

const calls = { path: '/calls', search: { outcome: 'failed' } } as const

export function healthFindings(health: Health): Finding[] {
  const ofProcess: Finding[] = health.status === 'ok' ? [] : [{ id: 'process', tone: 'bad', words: text.process[health.status], to: null }]
  const ofRoutes = health.routes
    .filter(({ available }) => !available)
    .map(({ model, provider }): Finding => ({ id: `${provider}/${model}`, tone: 'warn', words: text.circuit(model, provider), to: calls }))
  return [...ofProcess, ...ofRoutes]
}

const shareOf = ({ cap_inr: cap, spent_inr: spent }: Budgets[number]): number => spent / (cap ?? Number.POSITIVE_INFINITY)

/** Returns the budgets that are used up or nearly so, the most used first. */
export function budgetFindings(budgets: Budgets): Finding[] {
  return [...budgets]
    .sort((one, other) => shareOf(other) - shareOf(one))
    .flatMap(({ scope, id, period, name, cap_inr: cap, spent_inr: spent }): Finding[] => {
      if (cap === null || spent < cap * nearShare) return []
      const words = spent >= cap ? text.budgetUsed(name) : text.budgetNear(name, spent / cap)
      const to = scope === 'agent' ? { path: `/agents/${id}` } : scope === 'key' ? { path: '/keys', search: { key: Number(id) } } : null
      return [{ id: `${scope} ${id}${period === 'month' ? '' : ` ${period}`}`, tone: spent >= cap ? 'bad' : 'warn', words, to }]
    })
}

export function keyFindings(keys: Keys, nowMs: number): Finding[] {
  return keys.flatMap(({ id, name, state, expires_at: endsAt }): Finding[] => {
    const to = { path: '/keys', search: { key: id } }
    if (state === 'notice') return [{ id: `key ${id}`, tone: 'warn', words: text.keyUnused(name), to }]
    const leftMs = endsAt === null ? Number.POSITIVE_INFINITY : Date.parse(endsAt) - nowMs
    if (state !== 'active' || leftMs > soonMs) return []
    const days = Math.max(0, Math.floor(leftMs / dayMs))
    return [{ id: `key ${id}`, tone: 'warn', words: text.keyEnds(name, days === 0 ? 'today' : days === 1 ? 'tomorrow' : `in ${days} days`), to }]
  })
}

export const webhookFindings = (webhooks: Webhooks): Finding[] =>
  webhooks
    .filter(({ enabled, disabled_reason: reason }) => !enabled && reason !== null && reason !== 'manual')
    .map(({ id, url }): Finding => ({ id: `webhook ${id}`, tone: 'bad', words: text.webhookOff(url), to: null }))

export const invitationFindings = (many: number): Finding[] => (many === 0 ? [] : [{ id: 'invitations', tone: 'warn', words: text.invited(many), to: null }])
