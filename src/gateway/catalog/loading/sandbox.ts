import { type Config, keyVariableOf } from '../../../platform/config.ts'
import { Secret } from '../../../platform/security/secret.ts'
import type { Provider } from '../../providers/provider.ts'
import type { CatalogSnapshot } from '../model.ts'
import type { CatalogPart } from './build-snapshot.ts'
import type { ModelEntry } from './file-schema.ts'

/** Id of the simulated provider. */
export const sandboxId = 'sandbox'

/** Id of the image model of the simulated provider. */
export const sandboxImageId = 'sandbox-image'

/** Returns whether this is the simulated provider. Presets and the image panel use it only when the caller can reach nothing else. */
export const isSandbox = (provider: Provider): boolean => provider.id === sandboxId

const price = { source: 'made up for the sandbox' }
const chat = { provider: sandboxId, input_inr_per_mtok: 20, output_inr_per_mtok: 80, ...price }
const common = { owned_by: sandboxId, languages: ['en'] }
const chatParameters = ['max_tokens', 'temperature', 'top_p', 'stop', 'stream', 'tools', 'tool_choice', 'response_format']

const sandboxModels: readonly ModelEntry[] = [
  { ...common, id: 'sandbox-chat', context_length: 131_072, max_output_tokens: 16_384, tools: true, supported_parameters: chatParameters, routes: [chat] },
  {
    ...common,
    id: 'sandbox-reasoning',
    context_length: 131_072,
    max_output_tokens: 32_768,
    tools: true,
    reasoning: true,
    supported_parameters: [...chatParameters, 'reasoning', 'reasoning_effort'],
    routes: [{ ...chat, input_inr_per_mtok: 40, output_inr_per_mtok: 160 }],
  },
  {
    ...common,
    id: 'sandbox-vision',
    context_length: 131_072,
    max_output_tokens: 16_384,
    tools: true,
    modalities: ['text', 'image'],
    supported_parameters: chatParameters,
    routes: [{ ...chat, input_inr_per_mtok: 30, output_inr_per_mtok: 120 }],
  },
  {
    ...common,
    id: 'sandbox-embed',
    kind: 'embedding',
    context_length: 8192,
    dimensions: 1024,
    routes: [{ provider: sandboxId, input_inr_per_mtok: 1, ...price }],
  },
  { ...common, id: sandboxImageId, kind: 'image', edits: true, inr_per_image: 2, routes: [{ provider: sandboxId, ...price }] },
  { ...common, id: 'sandbox-audio', kind: 'transcription', modalities: ['audio'], routes: [{ provider: sandboxId, inr_per_minute: 1, ...price }] },
  { ...common, id: 'sandbox-speech', kind: 'speech', modalities: ['audio'], routes: [{ provider: sandboxId, inr_per_million_characters: 50, ...price }] },
  { ...common, id: 'sandbox-rerank', kind: 'rerank', routes: [{ provider: sandboxId, inr_per_thousand_searches: 100, ...price }] },
  {
    ...common,
    id: 'sandbox-moderation',
    kind: 'moderation',
    modalities: ['text', 'image'],
    routes: [{ provider: sandboxId, input_inr_per_mtok: 0, ...price }],
  },
]

/** The ids of the models of the sandbox, also while it is off. */
export const sandboxModelIds: ReadonlySet<string> = new Set(sandboxModels.map(({ id }) => id))

/**
 * Returns the simulated provider with its models. `url` is its origin, or its OpenAI base URL that ends in `/v1`. It accepts any key, so that calls
 * on own keys can be tried too.
 */
export function sandboxProvider(url: string): CatalogPart {
  const provider: Provider = {
    id: sandboxId,
    name: 'Sandbox (simulated)',
    dialect: 'openai',
    baseUrl: url.replace(/(\/v1)?\/*$/, '/v1'),
    auth: 'bearer',
    residency: 'global',
    byok: true,
    keyShape: null,
    quirks: [],
    forwards: 'all',
    platformKey: new Secret('sandbox-needs-no-key'),
    configured: true,
  }
  return { provider, models: sandboxModels }
}

/** Returns whether the sandbox is on. SANDBOX decides. When SANDBOX is not set, the sandbox is on while the platform can serve nothing else. */
export function sandboxIsWanted(config: Config, catalog: CatalogSnapshot): boolean {
  return config.SANDBOX ?? onlySandbox(catalog.models)
}

/** Whether the sandbox is on, and which setting decides that. */
export interface SandboxState {
  readonly isOn: boolean
  /** A clause such as `because OPENAI_API_KEY is set`. */
  readonly why: string
  /** A clause that says how it is on, for a sandbox that is off. */
  readonly turnOn: string
}

/** Returns the state of the sandbox. It names the setting that a person changes to get the other state. */
export function sandboxState({ SANDBOX: setting }: Pick<Config, 'SANDBOX'>, { models, providers }: CatalogSnapshot): SandboxState {
  const isOn = providers.get(sandboxId)?.configured === true
  if (setting !== null) return { isOn, why: `because SANDBOX=${setting ? 'on' : 'off'} is set`, turnOn: 'SANDBOX=on turns it on' }
  const turnOn = 'SANDBOX=on keeps it on'
  if (isOn) return { isOn, why: 'because no provider key that is set serves a model', turnOn }
  const serving = [...models.values()]
    .flatMap(({ routes }) => routes)
    .find(({ provider, byokOnly }) => provider.configured && !byokOnly && !isSandbox(provider))?.provider
  if (serving === undefined) return { isOn, why: 'because a provider serves models', turnOn }
  const { id, name, platformKey, keyVariable, usesIdentity } = serving
  if (usesIdentity === true) return { isOn, why: `because ${name} serves on the identity of this gateway`, turnOn }
  return { isOn, why: `because ${platformKey === null ? `${name} answers without a key` : `${keyVariable ?? keyVariableOf(id)} is set`}`, turnOn }
}

/**
 * Returns true while the platform's keys serve only models of the sandbox. A platform key does not count for models that run only on callers' own
 * keys.
 */
export function onlySandbox(models: CatalogSnapshot['models']): boolean {
  return ![...models.values()].some(({ routes }) => routes.some(({ provider, byokOnly }) => provider.configured && !byokOnly && !isSandbox(provider)))
}
