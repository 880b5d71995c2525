import { fail, type GatewayError } from '../../platform/errors.ts'
import { isSandbox } from '../catalog/sandbox.ts'
import type { Candidate } from './candidates.ts'
import type { ResolveRequest } from './plan.ts'
import type { RoutingWorld } from './routing-world.ts'

/** Why none of the routes that are left can be dialed, and what the caller may do: `byok_required` or `no_route`. */
export function withoutCredential(left: readonly Candidate[], { fields, kind }: ResolveRequest, { catalog }: RoutingWorld): GatewayError {
  // Such models are also reached in the provider's own wire format, with a credential that the caller forwards.
  const native = left.find(({ route }) => route.byokOnly && route.provider.dialect === 'anthropic')
  if (native) return fail('byok_required', { message: byokRequired(native.route.provider.id) })
  const ids = [...new Set(left.map(({ route }) => route.provider.id))]
  const takers = [...new Set(left.flatMap(({ route: { provider } }) => (provider.byok ? [provider.id] : [])))]
  const why =
    fields.upstreamKey === null
      ? `${listed(ids)} ${ids.length === 1 ? 'is' : 'are'} not configured here, withheld, or on your own key only.`
      : `"upstream_key" is of no use for ${listed(ids)}.`
  const own = takers.length === 0 ? '' : ` Save a key (PUT /me/byok/${takers[0]}), or send one as "upstream_key".`
  const simulated = [...catalog.models.values()].find(model => model.kind === kind && model.routes.every(({ provider }) => isSandbox(provider)))
  const instead = simulated === undefined ? ' GET /v1/models lists the models.' : ` Without any key: "${simulated.id}", simulated.`
  return fail('no_route', { message: `No route can be used: ${why}${own}${instead} Nothing was dialed.` })
}

const byokRequired = (provider: string): string =>
  `This model runs on your own ${provider} credential only. Save one (PUT /me/byok/${provider}) or, at /v1/messages, send it along with the gateway key in x-br-api-key. Or choose another model of GET /v1/models; in Claude Code with ANTHROPIC_MODEL and ANTHROPIC_DEFAULT_HAIKU_MODEL.`

const listed = (ids: readonly string[]): string => (ids.length < 2 ? ids.join('') : `${ids.slice(0, -1).join(', ')} and ${ids.at(-1)}`)
