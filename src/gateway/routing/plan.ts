import type { CallPolicy } from '../../platform/security/principal.ts'
import type { Secret } from '../../platform/security/secret.ts'
import type { Model, Route } from '../catalog/model.ts'
import type { AttemptIdentity } from '../cloud/identities.ts'
import type { RouterFields } from '../wire/chat/router-fields.ts'
import type { OrgRouting } from './org-routing.ts'

/** One dial that the call may make. */
export interface Attempt {
  readonly route: Route
  /** The model of the route. In a chain it can differ between attempts. */
  readonly model: Model
  readonly credential: Secret | null
  /** True for the caller's own provider key. Its usage is metered, but not debited. */
  readonly byok: boolean
  /** True when the gateway sends the caller's forwarded credential and no other credential. */
  readonly forwarded?: true
  /** The credentials that expire which authorise the attempt. Left out for an attempt with a key, or without any. */
  readonly identity?: AttemptIdentity
  /** True when the attempt is made only after a 429 on the previous attempt. */
  readonly afterRateLimit?: true
}

/** The kind of inference that a call asks for. */
export type ServedKind = 'chat' | 'embedding' | 'image' | 'transcription' | 'speech'

/** Abilities that a model needs for a request. */
export interface Needs {
  readonly tools: boolean
  readonly vision: boolean
}

/** The attempts that a call may make, in order. The list is finite and has no duplicates. No provider has been contacted yet. */
export interface Plan {
  /** The model of the first attempt. */
  readonly model: Model
  readonly attempts: readonly Attempt[]
  /** The x-br-* headers that explain the choice of a model, in printable ASCII. */
  readonly headers: Readonly<Record<string, string>>
}

export interface ResolveRequest {
  readonly modelId: string
  readonly kind: ServedKind
  readonly fields: RouterFields
  /** Saved keys, own servers, chains and retention of the caller's organisation. */
  readonly org: OrgRouting
  /** What the caller's key and agent may use. */
  readonly policies: readonly CallPolicy[]
  /** Approximate size of the prompt in tokens, compared with context windows. */
  readonly promptTokens: number
  /** What the request contains, for presets that choose a model. When it is left out, the request is plain text. */
  readonly needs?: Needs
  /** Returns the user's last text. Presets classify it. When the function is left out, there is no text. */
  promptText?(): string
  /** True when the request contains a credential that the gateway may forward to native routes. */
  readonly forwards?: boolean
  /** True when the saved key may be tried after the forwarded credential has reached its rate limit. */
  readonly overflows?: boolean
  /**
   * Where the platform's own account may pay. When it is left out, it may pay everywhere. `india` means only in India, for trial keys. `none` means
   * nowhere, for an empty balance.
   */
  readonly platform?: 'india' | 'none'
  /** The conversation by which routes that rank equal are ordered. When it is left out, they keep the order of the catalog. */
  readonly tieKey?: string
  /** The model that a preset has picked for the conversation. The preset picks it again if it may. */
  readonly keptModel?: string
  /** Throws when a known model cannot do what the request asks. It runs before the checks of residency and credentials. */
  accepts?(model: Model): void
}
