/** Whether a call can reach a model now, and if not, why and what helps. */
import type { Tone } from '../../ui/data/status.tsx'
import type { IconName } from '../../ui/icon.tsx'
import type { Model } from '../steps/use-models.ts'

export type Route = Model['routes'][number]

export interface Callable {
  readonly isReady: boolean
  readonly tone: Tone
  readonly icon: IconName
  readonly name: string
  readonly means: string
  /** True: a key of the organisation at one of its providers would help. */
  readonly needsKey: boolean
}

const ready = (name: string, icon: IconName, means: string): Callable => ({ isReady: true, tone: 'good', icon, name, means, needsKey: false })

/** Returns the state of a route: whether a call can take it, and on whose key. */
export function routeState({ available, maintenance, byok_only: isOwnOnly, configured, provider }: Route, ownKeys: ReadonlySet<string>): Callable {
  const hasOwn = ownKeys.has(provider)
  if (!hasOwn && (isOwnOnly || !configured))
    return {
      isReady: false,
      tone: 'quiet',
      icon: 'key',
      name: 'Needs a key',
      means: 'Neither the operator nor your organisation has a key here.',
      needsKey: true,
    }
  if (maintenance)
    return { isReady: false, tone: 'warn', icon: 'pause', name: 'Maintenance', means: 'The operator has taken it out of use for now.', needsKey: false }
  if (!available)
    return { isReady: false, tone: 'warn', icon: 'warn', name: 'Failing', means: 'It failed several times, and is tried again soon.', needsKey: false }
  return hasOwn ? ready('Your key', 'key', 'A call can take it on the key of your organisation.') : ready('Ready', 'good', 'A call can take it.')
}

/** Returns whether a call can reach the model on any of its routes. */
export function callableOf({ kind, routes }: Model, ownKeys: ReadonlySet<string>): Callable {
  if (kind === 'virtual') return ready('Chooses', 'split', 'It chooses a model for each call.')
  const states = routes.map(route => routeState(route, ownKeys))
  const best = states.find(({ isReady, icon }) => isReady && icon === 'good') ?? states.find(({ isReady }) => isReady)
  if (best !== undefined) return { ...best, means: best.icon === 'key' ? 'A call reaches it on the key of your organisation.' : 'A call reaches it now.' }
  const failing = states.find(({ tone }) => tone === 'warn')
  if (failing !== undefined)
    return { ...failing, name: 'Out of use', means: 'Each of its routes fails or is maintained now. Calls of it are refused until one works again.' }
  return {
    isReady: false,
    tone: 'quiet',
    icon: 'key',
    name: 'Needs a key',
    means: 'No provider of it has a key here. The operator can set one, and an owner of your organisation can add one.',
    needsKey: true,
  }
}
