import type { Clock } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import type { SurfaceOf } from './surface.ts'
import type { InvokeRow, Tool } from './tool.ts'
import { Toolbox, ToolCatalog } from './toolbox.ts'
import { toolsetsOf } from './toolset-choice.ts'

/** What the gateway's own surface is made of. */
export interface GatewaySurfaceDeps {
  readonly tools: readonly Tool[]
  readonly invoke: InvokeRow
  readonly clock: Clock
  readonly log: Log
}

/** The surface of this gateway for each caller: what the endpoint rows let them do. */
export function gatewaySurface({ tools, invoke, clock, log }: GatewaySurfaceDeps): SurfaceOf {
  const catalog = new ToolCatalog(tools)
  return (call, url) => ({
    tools: new Toolbox({ catalog, invoke, clock, log, toolsets: toolsetsOf(url) }, call),
  })
}
