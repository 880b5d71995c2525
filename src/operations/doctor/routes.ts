import type { ProbedRoute, RouteCheck } from '../../gateway/inference/probe/route-probe.ts'
import { counted } from '../../platform/observe/terminal/counted.ts'
import { inrFromUinr } from '../../platform/values/money.ts'
import type { Finding } from './finding.ts'

/** Returns a finding for each tried route, with what its calls cost, and one for all of them together. */
export function routeFindings(routes: readonly ProbedRoute[], costMaxUinr: bigint): Finding[] {
  const total = routes.flatMap(({ checks }) => checks).reduce((sum, { costUinr }) => sum + costUinr, 0n)
  const left = (why: ProbedRoute['skipped']): number => routes.filter(({ skipped }) => skipped === why).length
  const skipped = [
    ...(left('cost') > 0 ? [`${counted(left('cost'), 'route was', 'routes were')} not tried to the end because of the bound of cost (--max-inr)`] : []),
    ...(left('time') > 0 ? [`${counted(left('time'), 'route was', 'routes were')} not tried to the end because of the bound of time (--max-seconds)`] : []),
    ...(left('kind') > 0 ? [`${counted(left('kind'), 'route')} of pictures or sound ${left('kind') === 1 ? 'is' : 'are'} never tried`] : []),
  ]
  const cost = `all calls together cost about ₹${inrFromUinr(total)} of at most ₹${inrFromUinr(costMaxUinr)}, which the providers charge you`
  const state = left('cost') + left('time') > 0 ? 'warning' : 'ok'
  return [
    ...routes.filter(({ checks }) => checks.length > 0).map(findingOf),
    routes.length === 0
      ? { what: 'probe', state: 'warning', detail: 'no route is configured, so nothing was tried' }
      : { what: 'probe', state, detail: [cost, ...skipped].join('; ') },
  ]
}

function findingOf({ provider, model, checks }: ProbedRoute): Finding {
  return { what: `route ${provider}/${model}`, state: checks.some(({ failed }) => failed !== null) ? 'wrong' : 'ok', detail: checks.map(said).join(', ') }
}

function said({ name, failed, latencyMs, costUinr }: RouteCheck): string {
  return `${name} ${failed === null ? 'ok' : `FAILED (${failed})`} ${latencyMs} ms ₹${inrFromUinr(costUinr)}`
}
