/** The advice for a caller when a provider has refused the caller's own credential. It names the credential, the reason, and where to change it. */
import type { Attempt } from '../routing/plan.ts'
import type { ParsedRequest } from './kinds/request.ts'
import type { Failed } from './replies/answer.ts'

/** The origin of an attempt's credential: a header of the call, `upstream_key` in the call, or a credential saved for a provider or an own server. */
export type OwnKeyKind = 'forwarded' | 'upstream_key' | 'saved' | 'server'

export interface OwnKeyAdvice {
  readonly kind: OwnKeyKind
  readonly provider: string
  /** Sentences that come after the message of the last failure. They quote the provider's message when another route failed after this one. */
  readonly advice: string
}

/** Returns the advice about the last own credential that was refused or whose account has no money. Null when there was none. */
export function refusedOwnKey(failures: readonly Failed[], request: ParsedRequest): OwnKeyAdvice | null {
  const refused = failures.findLast(({ attempt, failure }) => attempt.byok && (failure.kind === 'billing' || failure.kind === 'credential'))
  if (refused === undefined) return null
  const { attempt, failure, message } = refused
  const kind = kindOf(attempt, request)
  const provider = attempt.route.provider.id
  const why = failure.kind === 'billing' ? 'has no money or quota left there' : 'was not accepted'
  const said = refused === failures.at(-1) ? '' : ` (${message})`
  const end = /[.!?…]$/.test(failures.at(-1)?.message ?? '') ? '' : '.'
  return { kind, provider, advice: `${end} ${named(kind, provider)} ${why}${said}. ${changed(kind, provider, failure.kind === 'billing')}` }
}

function kindOf({ forwarded, route }: Attempt, { fields }: ParsedRequest): OwnKeyKind {
  if (forwarded === true) return 'forwarded'
  if (fields.upstreamKey !== null) return 'upstream_key'
  return route.provider.userGiven === true ? 'server' : 'saved'
}

function named(kind: OwnKeyKind, provider: string): string {
  switch (kind) {
    case 'forwarded':
      return `Your own credential for ${provider}, which came in a header of the call,`
    case 'upstream_key':
      return `Your own key for ${provider}, which came as "upstream_key",`
    case 'saved':
      return `The key that your organisation has saved for ${provider}`
    case 'server':
      return `The key of your organisation's own server ${provider}`
  }
}

function changed(kind: OwnKeyKind, provider: string, isBilling: boolean): string {
  const account = isBilling ? ` or top up that account at ${kind === 'server' ? 'the server' : provider}` : ''
  switch (kind) {
    case 'forwarded':
      return `Send another credential${account}.`
    case 'upstream_key':
      return `Send another "upstream_key"${account}.`
    case 'saved':
      return `An owner changes it with PUT /me/byok/${provider} or in the console under provider keys${account}.`
    case 'server':
      return `An owner changes it at /me/endpoints or in the console under own servers${account}.`
  }
}
