import type { Provider } from '../providers/provider.ts'
import { isSandbox } from './loading/sandbox.ts'
import type { Model, Route } from './model.ts'

/** The models that a virtual model id may pick from. Routing decides which one it picks. */
export interface Preset {
  readonly id: string
  /** Value of `x-br-auto-preset`. */
  readonly preset: string
  /** Returns true when the preset may pick this model on this route. */
  admits(model: Model, route: Route): boolean
  readonly modalities: readonly string[]
}

const any = (): boolean => true
const withTools = (model: Model): boolean => model.tools
const text = ['text']

/** Every virtual id that GET /v1/models lists. */
export const presets: readonly Preset[] = [
  { id: 'auto', preset: 'balanced', admits: any, modalities: text },
  { id: 'auto:balanced', preset: 'balanced', admits: any, modalities: text },
  { id: 'auto:cheapest', preset: 'cheapest', admits: any, modalities: text },
  { id: 'auto:fastest', preset: 'fastest', admits: any, modalities: text },
  { id: 'auto:best', preset: 'best', admits: any, modalities: text },
  { id: 'auto:agent', preset: 'agent', admits: withTools, modalities: text },
  { id: 'auto:code', preset: 'code', admits: withTools, modalities: text },
  { id: 'auto:reasoning', preset: 'reasoning', admits: model => model.reasoning, modalities: ['text', 'reasoning'] },
  { id: 'auto:vision', preset: 'vision', admits: model => model.modalities.includes('image'), modalities: ['text', 'image'] },
  { id: 'auto:long-context', preset: 'long-context', admits: any, modalities: text },
  { id: 'auto:sovereign', preset: 'sovereign', admits: (_, route) => route.residency === 'india', modalities: text },
]

/** Returns the preset of a model id. `best` means `auto:best`. It is accepted but not listed. */
export const presetOf = (modelId: string): Preset | undefined => presets.find(entry => entry.id === (modelId === 'best' ? 'auto:best' : modelId))

/**
 * Returns the listed entries of the virtual ids. Each entry has the routes that it may take on platform keys. When there are none, it has the routes
 * that it could take once their providers are configured. Every listed model therefore has a real route.
 */
export function virtualModels(concrete: Iterable<Model>, ownedBy: string): readonly Model[] {
  const chats = [...concrete].filter(model => model.kind === 'chat')
  const pairs = chats.flatMap(model => model.routes.map(route => ({ model, route })))
  return presets.flatMap(entry => {
    const admitted = pairs.filter(({ model, route }) => entry.admits(model, route))
    const routes = preferReachable(admitted.map(({ route }) => route))
    return routes.length === 0 ? [] : [toModel(entry, routes, ownedBy)]
  })
}

function preferReachable(routes: readonly Route[]): readonly Route[] {
  const reachable = routes.filter(route => servedByPlatform(route.provider, route.byokOnly))
  const real = reachable.filter(route => !isSandbox(route.provider))
  if (real.length > 0) return real
  return reachable.length > 0 ? reachable : routes
}

const servedByPlatform = (provider: Provider, byokOnly: boolean): boolean => provider.configured && !byokOnly

function toModel(entry: Preset, routes: readonly Route[], ownedBy: string): Model {
  return {
    id: entry.id,
    kind: 'virtual',
    ownedBy,
    languages: [],
    contextLength: null,
    maxOutputTokens: null,
    tools: true,
    modalities: entry.modalities,
    supportedParameters: [],
    reasoning: false,
    openness: null,
    inrPerImage: null,
    dimensions: null,
    efforts: [],
    alwaysThinks: false,
    imageMaxEdge: null,
    edits: false,
    gated: false,
    routes,
  }
}
