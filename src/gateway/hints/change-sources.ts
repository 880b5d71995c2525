/** Translates what the gateway knows of a change: news of the control log, scopes that have spent something, and acts of management. */
import type { Change } from './change.ts'

interface Item {
  readonly kind: string
  readonly ref: string
}

/** Returns the changes that an item of the control log reports. The log is the only source of changes that every process follows anyway. */
export function changesOfNews({ kind, ref }: Item): readonly Change[] {
  switch (kind) {
    case 'key_changed':
    case 'key_revoked':
      return [{ kind: 'key', orgId: null, id: ref }]
    case 'agent_changed':
    case 'agent_revoked':
    case 'agent_owner':
    case 'agent_pause':
      return [{ kind: 'agent', orgId: null, id: ref }]
    case 'member_changed': {
      const [orgId = '', userId = ''] = ref.split(':')
      return [{ kind: 'member', orgId: Number(orgId), id: userId }]
    }
    case 'cap_changed':
      return ofCap(ref)
    case 'org_tools_changed':
      return [{ kind: 'tools', orgId: Number(ref), id: null }]
    default:
      return []
  }
}

/** The figures of a key and of an agent include their budget. */
function ofCap(ref: string): readonly Change[] {
  const [org = '', scope = '', id = ''] = ref.split(':')
  const orgId = Number(org)
  const budget: Change = { kind: 'budget', orgId, id: `${scope}:${id}` }
  return scope === 'key' || scope === 'agent' ? [budget, { kind: scope, orgId, id }] : [budget]
}

interface Spent {
  readonly orgId: number
  readonly scope: string
  readonly scopeId: string
}

export const changesOfSpend = (scopes: readonly Spent[]): readonly Change[] =>
  scopes.map(({ orgId, scope, scopeId }): Change => ({ kind: 'spent', orgId, id: `${scope}:${scopeId}` }))

/** An act of management that has succeeded, with the name of its endpoint. */
export interface Act {
  readonly name: string
  readonly principal: { readonly orgId: number; readonly userId: number | null }
  readonly params: Readonly<Record<string, string>>
}

type Naming = Pick<Change, 'kind'> & { readonly named?: true }

/** The acts that no news reports, because no process caches what they change. With `named`, the path has the id of the thing. */
const acts: Readonly<Record<string, Naming>> = {
  createAgent: { kind: 'agent' },
  createChildAgent: { kind: 'agent' },
  createChildByPerson: { kind: 'agent' },
  mintPlaygroundToken: { kind: 'agent' },
  createKey: { kind: 'key' },
  askForBudget: { kind: 'budget' },
  refuseBudgetRequest: { kind: 'budget' },
  inviteMember: { kind: 'member' },
  inviteMembers: { kind: 'member' },
  withdrawInvitation: { kind: 'member' },
  createWebhook: { kind: 'webhook' },
  changeWebhook: { kind: 'webhook', named: true },
  deleteWebhook: { kind: 'webhook', named: true },
  rotateWebhookSecret: { kind: 'webhook', named: true },
  testWebhook: { kind: 'webhook', named: true },
  createToolServer: { kind: 'tools' },
  syncToolServer: { kind: 'tools' },
  redeliverWebhookDelivery: { kind: 'webhook', named: true },
}

/** Returns the change that an act has made. Returns null for acts that the control log reports, and for those that no page shows. */
export function changeOfAct({ name, principal: { orgId, userId }, params }: Act): Change | null {
  const naming = acts[name.replace(/Console$/, '')]
  if (naming === undefined) return null
  const { kind, named } = naming
  const id = named === true ? (params['id'] ?? null) : null
  return { kind, orgId, id: id !== null && /^\d{1,10}$/.test(id) ? id : null, userId }
}
