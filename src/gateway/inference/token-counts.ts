/** The books of prompts that went to a provider to have their tokens counted: no calls, nothing is charged, but the prompts were there. */
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import { istDay } from '../../platform/ist-time.ts'
import type { Route } from '../catalog/model.ts'
import { placeOf } from './meter.ts'
import { addTokenCount } from './token-counts-queries.ts'

/** Notes that a prompt is about to be sent there. Rejects when it cannot be written down: then it must not be sent. */
export function tokenCountsIn(db: Db, clock: Clock): (orgId: number, route: Route) => Promise<void> {
  return async (orgId, route) => {
    await db.exec(addTokenCount, orgId, istDay(clock.nowMs()), route.modelId, route.provider.id, placeOf(route))
  }
}
