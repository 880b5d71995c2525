import type { CallPolicy } from '../../platform/security/principal.ts'
import type { Secret } from '../../platform/security/secret.ts'
import type { Model, Route } from '../catalog/model.ts'
import type { RouterFields } from '../wire/chat/router-fields.ts'
import type { OrgRouting } from './org-routing.ts'

/** One dial that may be made. */
export interface Attempt {
  readonly route: Route
  /** The model behind the route: in a chain it differs from attempt to attempt. */
  readonly model: Model
  readonly credential: Secret | null
  /** The caller's own provider key: usage value is metered, nothing is debited. */
  readonly byok: boolean
  /** True: the credential that the caller forwards is sent, and none of ours or of the organisation. */
  readonly forwarded?: true
  /** True: made only when the attempt before it was refused with 429. */
  readonly afterRateLimit?: true
}

/** What a call asks for. */
export type ServedKind = 'chat' | 'embedding' | 'image' | 'transcription' | 'speech'

/** What a model must be able to do to be picked for a request. */
export interface Needs {
  readonly tools: boolean
  readonly vision: boolean
}

/** Where a call may go, in order; finite and without duplicates. Nothing has been dialed yet. */
export interface Plan {
  /** The model of the first attempt. */
  readonly model: Model
  readonly attempts: readonly Attempt[]
  /** x-br-* headers that explain a choice of model. Printable ASCII. */
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
  /** Rough prompt size, for context windows. */
  readonly promptTokens: number
  /** What the request carries, for presets that choose a model; left out = plain text. */
  readonly needs?: Needs
  /** What the user wrote last, for the choice of a model by what is asked; left out = nothing. */
  promptText?(): string
  /** True: a credential for native routes comes with the request. */
  readonly forwards?: boolean
  /** True: behind that credential the saved key is tried, when the credential has run into its rate limit. */
  readonly overflows?: boolean
  /** Where the platform's own account may pay: everywhere when left out; a trial key's only in India; nobody's when the balance is out. */
  readonly platform?: 'india' | 'none'
  /** Throws when a model that is known cannot do what the request wants. Asked before residency and credentials. */
  accepts?(model: Model): void
}
