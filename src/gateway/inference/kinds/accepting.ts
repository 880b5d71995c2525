import { fail } from '../../../platform/errors.ts'
import type { Model } from '../../catalog/model.ts'
import { speaksKind } from '../../providers/dialects.ts'
import type { ServedKind } from '../../routing/plan.ts'

/** Returns a function that throws `no_route` for a model of this kind when no route's dialect supports the kind's calls. */
export function accepting(kind: ServedKind): (model: Model) => void {
  return model => {
    if (model.kind !== kind || model.routes.some(({ dialect }) => speaksKind(dialect, kind))) return
    const [route] = model.routes
    throw fail('no_route', { message: `${route?.provider.name ?? 'This provider'} has no ${kind} API that this gateway speaks. No provider was called.` })
  }
}
