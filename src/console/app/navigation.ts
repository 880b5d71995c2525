import type { IconName } from '../ui/icon.tsx'
import { hasRole, type Me } from './me.tsx'

/** An entry of the navigation. README.md says how to add one. */
export interface NavEntry {
  /** Path below /console. */
  readonly to: string
  readonly label: string
  readonly icon: IconName
  /** The letter after `g` that opens the page. */
  readonly letter: string
  /** The least role that sees the page. Default: member. */
  readonly role?: 'admin' | 'owner'
  /** A person with one of these capabilities sees the page, too. */
  readonly orCapability?: readonly string[]
  /** True for pages that only operators of the gateway see. */
  readonly isForOperators?: boolean
  /** True for the few pages that a phone shows at the bottom. The others are under More. */
  readonly isOnPhone?: boolean
}

/** Returns whether the navigation shows a page to the person. */
export const isShownTo = (me: Me, { role, orCapability = [], isForOperators = false }: NavEntry): boolean =>
  (hasRole(me, role ?? 'member') || orCapability.some(name => me.capabilities.includes(name))) && (!isForOperators || me.is_operator)

interface NavGroup {
  readonly title: string
  readonly entries: readonly NavEntry[]
}

/** The navigation in its order. A group without entries that the person may see is left out. */
export const navigation: readonly NavGroup[] = [
  {
    title: 'Work',
    entries: [
      { to: '/', label: 'Overview', icon: 'overview', letter: 'o', isOnPhone: true },
      { to: '/agents', label: 'Agents', icon: 'agent', letter: 'a', isOnPhone: true },
      { to: '/memory', label: 'Memory', icon: 'memory', letter: 'm', isOnPhone: true },
      { to: '/usage', label: 'Usage', icon: 'usage', letter: 'u', isOnPhone: true },
      { to: '/runs', label: 'Runs', icon: 'route', letter: 'r' },
      { to: '/calls', label: 'Calls', icon: 'list', letter: 'c' },
      { to: '/playground', label: 'Playground', icon: 'chat', letter: 'p' },
    ],
  },
  {
    title: 'Access',
    entries: [
      { to: '/keys', label: 'Keys', icon: 'key', letter: 'k' },
      { to: '/budgets', label: 'Budgets', icon: 'wallet', letter: 'b', role: 'admin' },
      { to: '/members', label: 'Members', icon: 'people', letter: 'e' },
      { to: '/workspaces', label: 'Workspaces', icon: 'folder', letter: 'w' },
      { to: '/tools', label: 'Tools', icon: 'server', letter: 't' },
    ],
  },
  {
    title: 'Organisation',
    entries: [
      { to: '/webhooks', label: 'Webhooks', icon: 'webhook', letter: 'x', role: 'admin' },
      { to: '/audit', label: 'Audit', icon: 'history', letter: 'i', role: 'admin', orCapability: ['audit:view'] },
      { to: '/workloads', label: 'Workload identities', icon: 'link', letter: 'y', role: 'admin' },
      {
        to: '/compliance',
        label: 'Compliance',
        icon: 'shield',
        letter: 'q',
        role: 'admin',
        orCapability: ['usage:org:view', 'cost:org:view', 'audit:view'],
      },
      { to: '/billing', label: 'Billing', icon: 'file', letter: 'z' },
      { to: '/settings', label: 'Settings', icon: 'settings', letter: 's' },
    ],
  },
  {
    title: 'Models',
    entries: [
      { to: '/models', label: 'Models', icon: 'model', letter: 'd' },
      { to: '/providers', label: 'Providers', icon: 'link', letter: 'v' },
      { to: '/routing', label: 'Routing', icon: 'split', letter: 'f' },
      { to: '/collections', label: 'Collections', icon: 'folder', letter: 'l' },
      { to: '/servers', label: 'Own servers', icon: 'terminal', letter: 'n' },
    ],
  },
  { title: 'Operator', entries: [{ to: '/health', label: 'Health', icon: 'shield', letter: 'h', isForOperators: true }] },
]
