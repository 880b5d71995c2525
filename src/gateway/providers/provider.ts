import type { Secret } from '../../platform/security/secret.ts'
import type { ImageStyleId } from './image-style-ids.ts'

/** Where a provider keeps and processes data. Only a proven 'india' counts under india_only. */
export type Residency = 'india' | 'global' | 'unknown'
export type DialectId = 'openai' | 'openai-responses' | 'anthropic' | 'gemini'
/** Small deviations from a dialect that a row may state; `cache-control`: takes marks for its cache, `echo-reasoning`: wants thoughts of earlier turns back. A vendor that needs a third one gets a dialect. */
export type Quirk = 'no-stream-usage' | 'system-as-user' | 'max-completion-tokens' | 'cache-control' | 'echo-reasoning'

/** How a provider is asked for audio. */
export type AudioStyleId = 'openai'

/** One upstream provider: a row of catalog/providers.json or of the operator's file, with what the environment adds. */
export interface Provider {
  readonly id: string
  readonly name: string
  readonly dialect: DialectId
  /** Without a trailing slash, up to and including the version segment: `https://api.example.com/v1`. */
  readonly baseUrl: string
  /** How the credential is sent. 'none': a local server without keys. */
  readonly auth: 'bearer' | 'x-api-key' | 'api-key' | 'x-key' | 'x-goog-api-key' | 'none'
  readonly residency: Residency
  /** Callers may bring their own key. */
  readonly byok: boolean
  /** Every key that this provider has issued has this shape, a regular expression source: another one is not saved. null = any non-empty string. */
  readonly keyShape: string | null
  /** Only this provider's keys have this shape, so it identifies the provider of a key. Left out: as `keyShape`. */
  readonly keySign?: string
  readonly quirks: readonly Quirk[]
  /** How its images are asked for; left out: as OpenAI's. */
  readonly imageStyle?: ImageStyleId
  /** 'all': every field of a request goes on to it on the platform's key too, as on a server of the operator's own. Left out: those of the format. */
  readonly forwards?: 'all'
  /** Fields beside those of the format that go on to it on the platform's key. */
  readonly fields?: ReadonlySet<string>
  /** Where its list of models is, relative to `baseUrl`. Default: `models`; null when it has no list. */
  readonly modelsPath?: string | null
  /** A GET, relative to `baseUrl`, that only a valid key may make: for providers whose list needs no key. */
  readonly keyCheckPath?: string
  /** Default: openai. */
  readonly audioStyle?: AudioStyleId
  /** The platform's own key from the environment; null when it has none. */
  readonly platformKey: Secret | null
  /** True when the platform can dial it without the caller's key: a key is set, or auth is 'none'. */
  readonly configured: boolean
  /** True: a user gave its address, so it is dialed through the guarded client only. */
  readonly userGiven?: true
}
