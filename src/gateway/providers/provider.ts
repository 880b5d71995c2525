import type { Secret } from '../../platform/security/secret.ts'
import type { ImageStyleId } from './image-style-ids.ts'

/** The place where a provider stores and processes data. `india_only` allows only 'india', and that residency must be proven. */
export type Residency = 'india' | 'global' | 'unknown'
export type DialectId = 'openai' | 'openai-responses' | 'anthropic' | 'gemini'
/**
 * Small deviations from a dialect that a catalog row may list. `cache-control` means that the provider accepts cache marks. `echo-reasoning` means
 * that it requires the thinking of earlier turns. A vendor that needs more than two deviations gets a dialect of its own.
 */
export type Quirk = 'no-stream-usage' | 'system-as-user' | 'max-completion-tokens' | 'cache-control' | 'echo-reasoning' | 'limit-excludes-thinking'

/**
 * The cloud that serves a dialect under paths of its own. `bedrock-invoke` is InvokeModel of AWS Bedrock, for Claude models. `vertex` is Google's
 * Vertex AI, for Gemini and Claude models. Decision 0872 gives the reasons.
 */
export const cloudIds = ['bedrock-invoke', 'vertex'] as const
export type CloudId = (typeof cloudIds)[number]

/** The dialects that a cloud serves under its own paths. */
export const cloudDialects: Readonly<Record<CloudId, readonly DialectId[]>> = { 'bedrock-invoke': ['anthropic'], vertex: ['anthropic', 'gemini'] }

/** How audio is requested from the provider. */
export type AudioStyleId = 'openai'

/** How documents are ranked by the provider. `jina` is also the form of vLLM and llama.cpp, `tei` that of Text Embeddings Inference. */
export const rerankStyleIds = ['cohere', 'jina', 'voyage', 'tei'] as const
export type RerankStyleId = (typeof rerankStyleIds)[number]

/** The values that an address may need: `{resource}`, `{region}`, `{project}` and `{location}`. */
export type PlaceName = 'resource' | 'region' | 'project' | 'location'
export type Place = Readonly<Partial<Record<PlaceName, string>>>

/** An address with placeholders. */
export interface AddressTemplate {
  readonly text: string
  /** Other addresses for certain values. The first one that applies is used. */
  readonly cases: readonly { readonly when: Place; readonly text: string }[]
  /** The placeholders of all these addresses. */
  readonly names: readonly PlaceName[]
}

/** How requests without a key are authorised: by signatures for a service of AWS, or by tokens of Google or of Entra for a scope. */
export type IdentityKind = { readonly kind: 'aws'; readonly service: string } | { readonly kind: 'google' } | { readonly kind: 'entra'; readonly scope: string }

/** One upstream provider: a row of catalog/providers.json or of the operator's file, together with settings from the environment. */
export interface Provider {
  readonly id: string
  readonly name: string
  readonly dialect: DialectId
  /** The cloud whose paths replace those of the dialect. When it is left out, the dialect has its own paths. */
  readonly cloud?: CloudId
  /** The URL without a trailing slash, up to and including the version segment: `https://api.example.com/v1`. */
  readonly baseUrl: string
  /** How the credential is sent. 'identity' means that the provider takes no key, only credentials that expire. 'none' means a local server without keys. */
  readonly auth: 'bearer' | 'x-api-key' | 'api-key' | 'x-key' | 'x-goog-api-key' | 'identity' | 'none'
  readonly residency: Residency
  /** True when callers may use their own key. */
  readonly byok: boolean
  /**
   * The form of every key that this provider issues, as the source of a regular expression. A key of another form is not saved. Null allows any
   * non-empty string.
   */
  readonly keyShape: string | null
  /** A form that only this provider's keys have. It identifies the provider of a key. The default is `keyShape`. */
  readonly keySign?: string
  readonly quirks: readonly Quirk[]
  /** How images are requested from the provider. The default is OpenAI's way. */
  readonly imageStyle?: ImageStyleId
  /**
   * With 'all', every field of a request is sent to the provider on the platform's key too, as to a server of the operator. When it is left out, only
   * the fields of the format are sent.
   */
  readonly forwards?: 'all'
  /** Fields outside the format that are sent to the provider on the platform's key. */
  readonly fields?: ReadonlySet<string>
  /**
   * The cost of reading a file in addition to its tokens. `file-parser` means that a plugin of that name reads files for models that cannot. One
   * engine of this plugin is free. `unpriced` means that the cost is unknown. When it is left out, there is no cost.
   */
  readonly files?: 'file-parser' | 'unpriced'
  /** True when it takes batches of requests in the format of its dialect. */
  readonly batches?: true
  /** The path of its list of models, relative to `baseUrl`. The default is `models`. Null means that there is no list. */
  readonly modelsPath?: string | null
  /** The path of a GET, relative to `baseUrl`, that succeeds only with a valid key. It is set for providers whose list of models needs no key. */
  readonly keyCheckPath?: string
  /** How audio is requested from the provider. The default is `openai`. */
  readonly audioStyle?: AudioStyleId
  /** How documents are ranked by the provider. The default is Cohere's way. */
  readonly rerankStyle?: RerankStyleId
  /** The path of the call that ranks documents, relative to `baseUrl`. The default is `rerank`. */
  readonly rerankPath?: string
  /** How long the provider keeps the beginning of a prompt in its cache, in seconds. When it is left out, five minutes. */
  readonly cacheTtlSeconds?: number
  /** The environment variable of the platform's key. The default is `<PROVIDER>_API_KEY`. */
  readonly keyVariable?: string
  /** The platform's own key from the environment. Null when there is none. */
  readonly platformKey: Secret | null
  /** True when the platform can call the provider without the caller's key, because a key or an identity is set or auth is 'none'. */
  readonly configured: boolean
  /** The address with its placeholders. Left out for a provider with a fixed address. */
  readonly address?: AddressTemplate
  /** The values that fill the address. A region is also part of signatures. */
  readonly place?: Place
  /** What the operator has to set before the provider is configured, as names of settings. Left out when nothing is missing. */
  readonly missing?: readonly string[]
  /** The credentials that expire which the provider takes beside keys, or in their place. */
  readonly identity?: IdentityKind
  /** True when the operator lets the identity of this process authorise requests to the provider. */
  readonly usesIdentity?: true
  /** True when nobody has tried this row against the real service. */
  readonly untried?: true
  /** True when an organisation chose the values of the address. The provider is then called through the client that checks addresses. */
  readonly isOrgPlace?: true
  /** True when a user gave the URL. The provider is then called only through the client that checks addresses. */
  readonly userGiven?: true
}
