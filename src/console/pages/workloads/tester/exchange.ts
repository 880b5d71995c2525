import { ApiError } from '../../../api/api-error.ts'
import { send } from '../../../api/call.ts'
import type { TrustRule } from '../use-trust.ts'

/** What the gateway made of a token. The token itself is not kept. */
export interface Exchanged {
  readonly scope: string
  readonly seconds: number
}

/** Exchanges a token as its workload would, for one scope of the rule. The page forgets the token of the agent immediately. */
export async function exchange(token: string, { agent_id: agent, scope }: Pick<TrustRule, 'agent_id' | 'scope'>): Promise<Exchanged> {
  const body = new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    subject_token: token,
    agent_id: String(agent),
    scope: scope.split(' ')[0] ?? '',
  })
  const headers = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' }
  const response = await send('/oauth/token', { method: 'POST', headers, body: body.toString(), credentials: 'omit' })
  const reply = (await response.json().catch(() => ({}))) as { error?: string; error_description?: string; scope?: string; expires_in?: number }
  if (!response.ok)
    throw new ApiError(reply.error_description ?? `The gateway answered ${response.status}.`, { status: response.status, code: reply.error ?? 'unknown' })
  return { scope: reply.scope ?? '', seconds: reply.expires_in ?? 0 }
}
