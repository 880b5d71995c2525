import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute } from '../../app/root-route.tsx'
import { type ActorKind, type AuditSearch, actorKinds } from './search.ts'

const actorShape = /^(user|key|agent|operator|system)(:\d{1,10})?$/
const actShape = /^[a-zA-Z0-9_.]{1,100}$/
const dayShape = /^\d{4}-\d{2}-\d{2}$/

export const auditRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/audit',
  validateSearch: (search: Record<string, unknown>): AuditSearch => {
    const text = (name: string, shape: RegExp): string | null => (shape.test(String(search[name] ?? '')) ? String(search[name]) : null)
    const [actor, act, from, to] = [text('actor', actorShape), text('act', actShape), text('from', dayShape), text('to', dayShape)]
    const line = Number(search['line'])
    const hasId = actor?.includes(':') === true || actorKinds.includes(actor as ActorKind)
    return {
      ...(search['tab'] === 'verify' ? { tab: 'verify' as const } : {}),
      ...(actor !== null && hasId ? { actor } : {}),
      ...(act === null ? {} : { act }),
      ...(from === null ? {} : { from }),
      ...(to === null ? {} : { to }),
      ...(Number.isSafeInteger(line) && line > 0 ? { line } : {}),
    }
  },
  component: lazyRouteComponent(() => import('./audit-page.tsx'), 'AuditPage'),
})
