import type { Secret } from '../../platform/security/secret.ts'
import type { ImageStyleId } from './image-style-ids.ts'

/** The place where a provider stores and processes data. Only a proven 'india' is allowed under india_only. */
export type Residency = 'india' | 'global' | 'unknown'
export type DialectId = 'openai' | 'openai-responses' | 'anthropic' | 'gemini'
/**
 * Small deviations from a dialect that a row may list. `cache-control`: the provider accepts cache marks. `echo-reasoning`: it requires the thinking of earlier
 * turns. A vendor that needs a third one gets a dialect.
 */
export type Quirk = 'no-stream-usage' | 'system-as-user' | 'max-completion-tokens' | 'cache-control' | 'echo-reasoning'

/** The way in which a provider is asked for audio. */
export type AudioStyleId = 'openai'

/** One upstream provider: a row of catalog/providers.json or of the operator's file, together with settings from the environment. */
export interface Provider {
  readonly id: string
  readonly name: string
  readonly dialect: DialectId
  /** The address without a trailing slash, up to and including the version segment: `https://api.example.com/v1`. */
  readonly baseUrl: string
  /** The way in which the credential is sent. 'none': a local server without keys. */
  readonly auth: 'bearer' | 'x-api-key' | 'api-key' | 'x-key' | 'x-goog-api-key' | 'none'
  readonly residency: Residency
  /** True: callers may use their own key. */
  readonly byok: boolean
  /**
   * The shape of every key that this provider has issued, as the source of a regular expression. A key of another shape is not saved. null: any non-empty
   * string.
   */
  readonly keyShape: string | null
  /** A shape that only this provider's keys have, so it identifies the provider of a key. Left out: the same as `keyShape`. */
  readonly keySign?: string
  readonly quirks: readonly Quirk[]
  /** The way in which the provider is asked for images. Left out: as at OpenAI. */
  readonly imageStyle?: ImageStyleId
  /**
   * 'all': on the platform's key, too, every field of a request is sent to the provider, as to a server of the operator's own. Left out: only the fields of the
   * format.
   */
  readonly forwards?: 'all'
  /** Fields outside of the format that are sent to the provider on the platform's key. */
  readonly fields?: ReadonlySet<string>
  /**
   * The cost of reading a file beside its tokens. `file-parser`: a plugin of that name reads files for models that cannot, and one of its engines has no fee.
   * `unpriced`: the cost is not known. Left out: there is none.
   */
  readonly files?: 'file-parser' | 'unpriced'
  /** The path of its list of models, relative to `baseUrl`. Default: `models`; null: it has no list. */
  readonly modelsPath?: string | null
  /** The path of a GET, relative to `baseUrl`, that only a valid key may make. It is for providers whose list needs no key. */
  readonly keyCheckPath?: string
  /** Default: openai. */
  readonly audioStyle?: AudioStyleId
  /** The platform's own key from the environment; null: there is none. */
  readonly platformKey: Secret | null
  /** True: the platform can call it without the caller's key, because a key is set or auth is 'none'. */
  readonly configured: boolean
  /** True: a user gave its address, so it is called only through the guarded client. */
  readonly userGiven?: true
}
