/** What a caller is told whose own credential a provider has refused: whose it is, why, and where to change it. */
import type { Attempt } from '../routing/plan.ts'
import type { ParsedRequest } from './kinds/request.ts'
import type { Failed } from './replies/answer.ts'

/** Where the credential of an attempt came from: with the call as a header or as `upstream_key`, or saved for a provider or an own server. */
export type OwnKeyKind = 'forwarded' | 'upstream_key' | 'saved' | 'server'

export interface OwnKeyAdvice {
  readonly kind: OwnKeyKind
  readonly provider: string
  /** Sentences that follow the words of the last failure; the provider's own are among them when another route failed behind it. */
  readonly advice: string
}

/** What to say of the last own credential that was refused, or whose account has no money; null when there was none. */
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
